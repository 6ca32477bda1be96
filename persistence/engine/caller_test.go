package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/logtest"
)

// held is an executor whose next transaction begins with a function of the test.
type held struct {
	executor
	begin func()
}

func (h *held) transact(ctx context.Context, steps []step, flush bool) (map[int]bool, error) {
	if begin := h.begin; begin != nil {
		h.begin = nil
		begin()
	}
	return h.executor.transact(ctx, steps, flush)
}

// opensHeld returns a database on SQLite with a note a, and a function that sets how its next transaction begins.
func opensHeld(t *testing.T, o Options) (db *DB, next func(begin func())) {
	t.Helper()
	db = openWith(t, sqliteFile(t), o)
	storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a", Text: "old"}))
	h := &held{executor: db.executor}
	db.executor = h
	return db, func(begin func()) { h.begin = begin }
}

// isThere reports whether a note exists.
func isThere(t *testing.T, db *DB, id string) bool {
	t.Helper()
	err := db.Find(t.Context(), &noteRow{}, "id = $1", "", id)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		t.Fatal(err)
	}
	return err == nil
}

// A caller who leaves while its transaction runs gets the outcome of the transaction, because it can no longer be
// undone.
func TestCallerLeavesDuringItsTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		write commit.Write
		want  error
	}{"committed": {saveNote{ID: "a", Version: 1, Text: "new"}, nil}, "fenced": {saveNote{ID: "a", Version: 7},
		commit.ErrFenced}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, next := opensHeld(t, Options{})
				ctx, leave := context.WithCancel(t.Context())
				ended := false
				next(func() { leave(); time.Sleep(time.Second); ended = true })
				units, err := db.CommitGathered(ctx, c.write)
				if !errors.Is(err, c.want) || !ended || (units == 1) != (err == nil) {
					t.Errorf("%d units, %v, ended %t, want %v", units, err, ended, c.want)
				}
				storetest.Equal(t, note(t, db, "a").Text == "new", c.want == nil, "the note is new")
			})
		})
	}
}

// A caller who leaves while its unit waits gets its own error, and the unit is not written.
func TestCallerLeavesBeforeItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, next := opensHeld(t, Options{})
		next(func() { time.Sleep(time.Second) })
		first := make(chan error, 1)
		go func() { first <- db.Commit(t.Context(), addNote{ID: "b"}) }()
		synctest.Wait() // b is in its transaction
		ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer leave()
		began := time.Now()
		units, err := db.CommitGathered(ctx, addNote{ID: "c"})
		if !errors.Is(err, context.DeadlineExceeded) || units != 0 || time.Since(began) != 500*time.Millisecond {
			t.Errorf("after %v: %d units, %v", time.Since(began), units, err)
		}
		storetest.Must(t, <-first)
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "d"}))
		if !isThere(t, db, "b") || isThere(t, db, "c") || !isThere(t, db, "d") {
			t.Error("not b and d alone are written")
		}
	})
}

// When a database is closed, the transaction under way ends with its outcome. The units that wait are refused with
// DRAINING, to be retried after a second, and are not written.
func TestCloseRefusesUnitsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := sqliteFile(t)
		db := storetest.Value(Open(t.Context(), file, noteKinds, Options{}))(t)
		_, err := db.Migrate(t.Context(), noteSchema)
		storetest.Must(t, err)
		db.Start(func(int) State { return nil })
		release := make(chan struct{})
		db.executor = &held{executor: db.executor, begin: func() { <-release }}
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- db.Commit(t.Context(), addNote{ID: "b"}) }()
		synctest.Wait()
		go func() { second <- db.Commit(t.Context(), addNote{ID: "c"}) }()
		synctest.Wait()
		storetest.Equal(t, db.Waiting(), 1)
		closed := make(chan error, 1)
		go func() { closed <- db.Close() }()
		synctest.Wait()
		var refused *fault.Error
		if err := <-second; !errors.As(err, &refused) || refused.Code != fault.Draining ||
			refused.RetryAfter != time.Second {
			t.Errorf("a unit that waits: %+v", err)
		}
		select {
		case err := <-first:
			t.Errorf("answered during its transaction: %v", err)
		default:
		}
		close(release)
		storetest.Must(t, <-first)
		storetest.Must(t, <-closed)
		again := openWith(t, file, Options{})
		if !isThere(t, again, "b") || isThere(t, again, "c") {
			t.Error("not b alone is written")
		}
	})
}

// The unit after 8192 that wait is refused with OVERLOADED, to be retried after a second.
func TestTooManyUnitsWait(t *testing.T) {
	db, err := Open(t.Context(), sqliteFile(t), noteKinds, Options{}) // without its writer
	storetest.Must(t, err)
	for n := range 8192 {
		select {
		case db.writer.queue <- &unit{}:
		default:
			t.Fatalf("%d units fit", n)
		}
	}
	storetest.Equal(t, db.Waiting(), 8192)
	var refused *fault.Error
	units, err := db.CommitGathered(t.Context(), addNote{ID: "b"})
	if !errors.As(err, &refused) || refused.Code != fault.Overloaded || refused.RetryAfter != time.Second || units != 0 {
		t.Errorf("%d units, %+v", units, err)
	}
	storetest.Must(t, db.Close())
}

// A unit that takes longer than the limit of a request is logged once while the database is patient, and never
// afterwards.
func TestSlowUnitsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logtest.Default(t)
		for _, c := range []struct {
			patient bool
			takes   time.Duration
			want    int
		}{{true, 999 * time.Millisecond, 0}, {true, 1001 * time.Millisecond, 1}, {false, time.Minute, 0}} {
			db, next := opensHeld(t, Options{Timeout: time.Second, Patient: c.patient})
			for range 2 {
				next(func() { time.Sleep(c.takes) })
				storetest.Must(t, db.Commit(t.Context(), saveNote{ID: "a", Version: note(t, db, "a").Version}))
			}
			storetest.Equal(t, strings.Count(log.String(), "the database is slow"), c.want, c.patient, c.takes)
			log.Reset()
		}
	})
}
