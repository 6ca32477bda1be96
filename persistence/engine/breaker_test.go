package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// A call that waits for a database that is silent for 750 ms is cancelled, a new one does not even begin, and the first
// answer closes the breaker.
func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCircuitBreaker()
		waits, cancel := p.until(t.Context())
		defer cancel()
		for range 10 { // late reads that do get an answer
			done := p.watch()
			time.Sleep(725 * time.Millisecond)
			done(true)
		}
		done := p.watch()
		time.Sleep(725 * time.Millisecond)
		synctest.Wait()
		if waits.Err() != nil {
			t.Error("broken off too early")
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if waits.Err() == nil {
			t.Error("it still waits")
		}
		later, cancel := p.until(t.Context())
		if later.Err() == nil {
			t.Error("it was begun")
		}
		cancel()
		done(false) // the read was cancelled
		again := p.watch()
		if later, cancel = p.until(t.Context()); later.Err() == nil {
			t.Error("begun while nothing was answered")
		}
		cancel()
		again(true)
		later, cancel = p.until(t.Context())
		defer cancel()
		time.Sleep(time.Minute)
		if later.Err() != nil {
			t.Error("broken off although it answers")
		}
		own, end := context.WithCancel(t.Context())
		later, cancel = p.until(own)
		defer cancel()
		end()
		synctest.Wait()
		if later.Err() == nil {
			t.Error("the caller's own end is not heard")
		}
	})
}

// A slow read alone does not trip the breaker, because the database answers others. When it answers nothing, the beats
// count from its last answer.
func TestSlowReadDoesNotTripBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &DB{timeout: time.Second, breaker: newCircuitBreaker()}
		waits, cancel := db.breaker.until(t.Context())
		defer cancel()
		done := db.Watch()
		for range 10 {
			time.Sleep(breakerBeats / 2 * breakerBeat)
			_, answered := db.Bound(t.Context())
			answered()
		}
		if waits.Err() != nil {
			t.Fatal("broken off although others are answered")
		}
		// A cancelled call is no evidence about the database.
		gone, leave := context.WithCancel(t.Context())
		_, given := db.Bound(gone)
		leave()
		time.Sleep(breakerBeats / 2 * breakerBeat)
		given()
		time.Sleep((breakerBeats/2 + 2) * breakerBeat)
		synctest.Wait()
		if waits.Err() == nil {
			t.Error("it still waits")
		}
		done(false)
	})
}

// A process that is stopped within a transaction does not keep its rows locked, and its error is retryable.
func TestTransactionsOfAStoppedProcessEnd(t *testing.T) {
	db := open(t, pgtest.DSN(t))
	conn := storetest.Value(db.executor.(*postgresExecutor).ready(t.Context()))(t)
	var bound string
	storetest.Must(t, db.read.NewSelect().ColumnExpr("current_setting('idle_in_transaction_session_timeout')").
		Scan(t.Context(), &bound))
	storetest.Equal(t, bound, "5s")
	_, err := conn.Exec(t.Context(), "BEGIN")
	storetest.Must(t, err)
	time.Sleep(1200 * time.Millisecond) // the server's clock
	_, err = conn.Exec(t.Context(), "COMMIT")
	storetest.Equal(t, fault.CodeOf(Translate(err)), fault.Unavailable)
	if _, err = conn.Exec(t.Context(), "SELECT 1"); fault.CodeOf(Translate(err)) != fault.Unavailable {
		t.Errorf("the connection afterwards: %v", err)
	}
}
