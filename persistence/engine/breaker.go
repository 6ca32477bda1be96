package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A database that does not answer is worse than one that refuses: a caller waits, and the callers behind it wait in
// turn. The feed of changes is read several times a second, so it detects this. The breaker opens when a read of the
// feed has been silent for breakerBeats and nothing else is answered in that time. Then everything that waits for the
// database is refused, and so is every new request, until a read is answered again.
//
// The breaker counts beats and does not measure time. So a process that is stopped, or gets no processor, does not
// mistake its own silence for the silence of the database. A slow read alone, waiting for one of many connections, does
// not trip the breaker.
const (
	breakerBeat  = 50 * time.Millisecond
	breakerBeats = 15
)

var errSilent = errors.New("the database does not answer")

// circuitBreaker cancels the operations on a database that is silent.
type circuitBreaker struct {
	mu     sync.Mutex
	closed context.Context // ends while the breaker is open
	trip   context.CancelCauseFunc
	open   bool
	// answers counts the operations that ended by themselves.
	answers atomic.Int64
}

func newCircuitBreaker() *circuitBreaker {
	b := &circuitBreaker{}
	b.closed, b.trip = context.WithCancelCause(context.Background())
	return b
}

// until returns a context that ends with ctx, and as soon as the breaker opens.
func (b *circuitBreaker) until(ctx context.Context) (context.Context, context.CancelFunc) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(closed, cancel)
	if closed.Err() != nil {
		cancel()
	}
	return ctx, func() { stop(); cancel() }
}

// watch counts the beats of a read until done is called with whether it was answered.
func (b *circuitBreaker) watch() (done func(answered bool)) {
	over := make(chan struct{})
	go func() {
		answers := b.answers.Load()
		for beats := 0; beats < breakerBeats; beats++ {
			select {
			case <-over:
				return
			case <-time.After(breakerBeat):
			}
			if now := b.answers.Load(); now != answers {
				answers, beats = now, -1
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		select {
		case <-over:
		default:
			b.open = true
			b.trip(errSilent)
		}
	}()
	return func(answered bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(over)
		if answered && b.open {
			b.open = false
			b.closed, b.trip = context.WithCancelCause(context.Background())
		}
	}
}

// Watch makes the circuit breaker count the time of one read, until done is called with whether it was answered. It
// does nothing on SQLite, which is in this process.
func (db *DB) Watch() (done func(answered bool)) {
	if !db.Postgres() {
		return func(bool) {}
	}
	return db.breaker.watch()
}
