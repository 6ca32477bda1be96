package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// State is the state that a transaction slot keeps between its transactions, such as the end of an audit chain. One
// transaction at a time uses it.
type State interface {
	// Remember returns a function that restores the present state; it is called after a rollback.
	Remember() (undo func())
	// Forget is called when it is unknown whether the transaction was committed.
	Forget()
}

// slot is a transaction slot: one transaction at a time runs in it, so its state follows the order of its transactions
// (D-EXT-03).
type slot struct {
	mu       sync.Mutex
	tx       bun.Tx
	kinds    kindSet
	state    State // nil before Start
	postgres bool
	server   *server // of PostgreSQL
}

// remember returns a function that restores the slot's state.
func (s *slot) remember() (undo func()) {
	if s.state == nil {
		return func() {}
	}
	return s.state.Remember()
}

// commitError is an error of COMMIT itself.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// ended restores the slot's state unless the transaction was committed, and translates its error. After an error of
// COMMIT it is unknown whether the transaction was committed, unless the database reported a rollback.
func (s *slot) ended(undo func(), failed map[int]bool, err error) error {
	if err == nil && len(failed) == 0 {
		return nil
	}
	undo()
	var c commitError
	if !errors.As(err, &c) {
		return Translate(err)
	}
	if s.state != nil {
		s.state.Forget()
	}
	t := Translate(c.error)
	if fault.CodeOf(t) == fault.Unavailable {
		slog.Warn("the outcome of a commit is unknown", "err", c.error)
		return fmt.Errorf("%w: %w", commit.ErrUnknown, t)
	}
	return t
}

// transact runs steps in one transaction of write.
func (s *slot) transact(ctx context.Context, write *bun.DB, steps []step) (failed map[int]bool, err error) {
	if s.tx, err = write.BeginTx(ctx, nil); err != nil {
		return nil, err
	}
	failed, err = s.apply(ctx, steps)
	if err != nil || len(failed) > 0 {
		s.tx.Rollback()
		return failed, err
	}
	return nil, s.commit()
}

func (s *slot) commit() error {
	warned := s.server.warnings()
	if err := s.tx.Commit(); err != nil {
		return commitError{err}
	}
	return s.server.replicated(warned)
}

// join adds writes to the slot's transaction.
func (s *slot) join(ctx context.Context, trace tracer, writes []commit.Write) error {
	steps, err := s.stepsOf([]*unit{{writes: writes}})
	if err != nil {
		return err
	}
	s.bind(steps)
	trace.steps(ctx, steps)
	failed, err := s.apply(ctx, steps)
	if err == nil && len(failed) > 0 {
		err = commit.ErrFenced
	}
	if err == nil {
		commit.Joined(ctx, writes)
	}
	return Translate(err)
}

// outage is the last transaction that failed because the database did not answer. A caller that waited for its turn
// during that whole transaction is refused at once, so that callers do not wait for one time limit after another.
type outage struct {
	began    atomic.Int64 // Unix nanoseconds
	reason   atomic.Pointer[fault.Error]
	failures failures
}

// note records how a transaction ended.
func (o *outage) note(began time.Time, err error, wrote bool) {
	o.failures.note(err, wrote)
	if down(err) {
		var reason *fault.Error
		errors.As(Translate(err), &reason)
		o.reason.Store(reason)
		o.began.Store(began.UnixNano())
	}
}

// since returns UNAVAILABLE for a caller that has waited since an instant, with the reason of that transaction, such as
// a full disk.
func (o *outage) since(from time.Time) error {
	if began := o.began.Load(); began != 0 && from.UnixNano() < began {
		if reason := o.reason.Load(); reason != nil && reason.Code == fault.Unavailable {
			return reason
		}
		return unavailable(errors.New("the previous transaction got no answer"))
	}
	return nil
}

// Admit sets a check that runs before anything is written. A refused write is not executed; Commit and InTx return the
// errors of check. Call Admit before the first of them.
func (db *DB) Admit(check func(ctx context.Context) error) { db.admit = check }

func (db *DB) admitted(ctx context.Context) error {
	if db.admit == nil {
		return nil
	}
	return db.admit(ctx)
}

func (db *DB) InTx(ctx context.Context, fn func(context.Context) error) error {
	if _, nested := ctx.Value(txKey{}).(*slot); nested {
		return fn(ctx)
	}
	ctx, committed := commit.Hooks(ctx)
	err := db.outermost(ctx, fn)
	if err == nil {
		committed()
	}
	return err
}

// outermost runs fn in a new transaction.
func (db *DB) outermost(ctx context.Context, fn func(context.Context) error) (err error) {
	if err := db.admitted(ctx); err != nil {
		return err
	}
	if db.patient.Load() {
		defer db.logSlowWait().Stop()
	}
	caller, since := ctx, time.Now()
	if db.Postgres() {
		var ended context.CancelFunc
		ctx, ended = db.breaker.until(ctx)
		defer ended()
	}
	var s *slot
	select {
	case s = <-db.slots:
	case <-ctx.Done():
		return Translate(ctx.Err())
	}
	defer func() { db.slots <- s }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := db.writer.outage.since(since); err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		if caller.Err() == nil { // a cancelled caller is no evidence about the database
			db.writer.outage.note(began, err, false)
		}
	}()
	if s.tx, err = db.write.BeginTx(ctx, nil); err != nil {
		return Translate(err)
	}
	undo := s.remember()
	defer func() {
		if p := recover(); p != nil {
			s.tx.Rollback()
			undo()
			panic(p)
		}
	}()
	if err = fn(context.WithValue(ctx, txKey{}, s)); err == nil {
		err = db.admitted(ctx)
	}
	if err != nil {
		s.tx.Rollback()
	} else {
		err = s.commit()
	}
	return s.ended(undo, nil, err)
}
