package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// The commit path. One goroutine takes the queued units, at most maxBatch and never two that touch one row. It makes
// them durable in one transaction of prepared statements (statement.go): guards, then fenced updates in key order, then
// everything else. A unit whose fence fails leaves the batch with ErrFenced and the rest goes on. Any other error rolls
// the batch back and runs its units one by one, so that only the faulty one fails.
const (
	maxBatch  = 256
	maxQueued = 8192
	maxYields = 2 // of the processor, before a batch is closed
)

type unit struct {
	writes []commit.Write
	done   chan error
	since  time.Time    // when it was queued
	size   int          // of the batch that it was committed with, set before done
	state  atomic.Int32 // queued → taken, or queued → abandoned by its caller
}

// flushes reports whether the unit has to be on the disk when it is committed.
func (u *unit) flushes() bool { return !slices.ContainsFunc(u.writes, isUnflushed) }

func isUnflushed(w commit.Write) bool { _, is := w.(commit.Unflushed); return is }

const (
	queued int32 = iota
	taken
	abandoned
)

type writer struct {
	db    *DB
	queue chan *unit
	// probes are callers of Writable. The channel has no room: a caller that has left is not answered.
	probes chan chan error
	stop   chan struct{}
	ended  sync.WaitGroup
	slots  chan *slot // of interactive transactions
	batch  *slot

	outage         outage
	batches, units atomic.Int64
	observe        atomic.Pointer[func(Committed)]
}

// Committed describes a committed transaction of gathered units.
type Committed struct {
	Units, Statements int // a statement for many rows counts once
	Took              time.Duration
	// Functions are the types of writes for which the transaction left the executor of statements, sorted as they ran;
	// none in a transaction of statements alone.
	Functions []string
}

// OnCommit calls observe for every commit of gathered units, for metrics. It runs on the writer's goroutine and must
// not block.
func (db *DB) OnCommit(observe func(Committed)) { db.writer.observe.Store(&observe) }

// Batches counts the transactions of gathered units, for metrics.
func (db *DB) Batches() int64 { return db.writer.batches.Load() }

// Units counts the units of work that were made durable.
func (db *DB) Units() int64 { return db.writer.units.Load() }

// Waiting returns the number of units that wait for the writer.
func (db *DB) Waiting() int { return len(db.writer.queue) }

var _ commit.Committer = (*DB)(nil)

func newWriter(db *DB) *writer {
	w := &writer{db: db, queue: make(chan *unit, maxQueued), probes: make(chan chan error), stop: make(chan struct{})}
	w.batch = &slot{kinds: db.kinds, postgres: db.Postgres(), server: db.server}
	n := 4
	if !db.Postgres() {
		n = 1
	}
	w.slots = make(chan *slot, n)
	for range n {
		s := &slot{kinds: db.kinds, postgres: true, server: db.server}
		if !db.Postgres() {
			s = w.batch // one connection, one slot
		}
		w.slots <- s
	}
	return w
}

// Start begins to commit units. state creates the state of each transaction slot; slot 0 is the writer's.
func (db *DB) Start(state func(slot int) State) {
	w := db.writer
	w.batch.state = state(0)
	if db.Postgres() {
		for i := range cap(w.slots) {
			s := <-w.slots
			s.state = state(i + 1)
			w.slots <- s
		}
	}
	w.ended.Add(1)
	go w.run()
}

func (w *writer) close() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.ended.Wait()
}

func (db *DB) Commit(ctx context.Context, writes ...commit.Write) error {
	_, err := db.CommitGathered(ctx, writes...)
	return err
}

// CommitGathered is Commit that also returns how many units, including this one, shared its transaction: 0 if nothing
// was committed, or if it is part of an interactive transaction.
func (db *DB) CommitGathered(ctx context.Context, writes ...commit.Write) (units int, err error) {
	if s, ok := ctx.Value(txKey{}).(*slot); ok {
		return 0, s.join(ctx, db.trace, writes)
	}
	if err := db.admitted(ctx); err != nil {
		return 0, err
	}
	if db.patient.Load() {
		defer db.logSlowWait().Stop()
	}
	u := &unit{writes: writes, done: make(chan error, 1), since: time.Now()}
	select {
	case db.writer.queue <- u:
	default:
		return 0, fault.New(fault.Overloaded, "too many writes are waiting").After(time.Second)
	}
	select {
	case err = <-u.done:
	case <-ctx.Done():
		if u.state.CompareAndSwap(queued, abandoned) {
			return 0, ctx.Err() // nothing was written
		}
		err = <-u.done // its transaction has begun and is bounded
	case <-db.writer.stop:
		if u.state.CompareAndSwap(queued, abandoned) {
			return 0, fault.New(fault.Draining, "the service is stopping").After(time.Second)
		}
		err = <-u.done
	}
	return u.size, err
}

// run commits batch after batch until stop, and then the queued units.
func (w *writer) run() {
	defer w.ended.Done()
	var later []*unit // they touch a row of the batch before them
	for {
		select {
		case done := <-w.probes: // also while units for later keep the writer busy
			w.probe(done)
		default:
		}
		b := batch{rows: map[rowKey]struct{}{}}
		for _, u := range later {
			b.take(u)
		}
		if len(b.units) == 0 {
			select {
			case u := <-w.queue:
				b.take(u)
			case done := <-w.probes:
				w.probe(done)
				continue
			case <-w.stop:
				select {
				case u := <-w.queue:
					b.take(u)
				default:
					return
				}
			}
		}
		w.gather(&b)
		later = b.later
		if len(b.units) > 0 {
			w.commit(b.units)
		}
	}
}

// gather fills a batch with queued units. A larger batch costs little more, so a goroutine that is about to queue a
// unit gets the processor first. A lone unit does not wait.
func (w *writer) gather(b *batch) {
	for yielded := 0; len(b.units) < maxBatch; {
		select {
		case u := <-w.queue:
			b.take(u)
			yielded = 0
		default:
			if yielded++; yielded > maxYields {
				return
			}
			runtime.Gosched()
		}
	}
}

// batch contains the units of one transaction, no two of which touch one row.
type batch struct {
	units, later []*unit
	rows         map[rowKey]struct{}
}

// take adds a unit to the batch, or to the units for later.
func (b *batch) take(u *unit) {
	if u.state.Load() == abandoned {
		return
	}
	if len(b.units) == maxBatch || !b.reserve(u) {
		b.later = append(b.later, u)
		return
	}
	if u.state.CompareAndSwap(queued, taken) {
		b.units = append(b.units, u)
	}
}

type rowKey struct{ table, key string }

// reserve reserves the fenced rows of u for the batch; false if one is taken.
func (b *batch) reserve(u *unit) bool {
	for _, w := range u.writes {
		if k, ok := fencedRow(w); ok {
			if _, taken := b.rows[k]; taken {
				return false
			}
		}
	}
	for _, w := range u.writes {
		if k, ok := fencedRow(w); ok {
			b.rows[k] = struct{}{}
		}
	}
	return true
}

func fencedRow(w commit.Write) (rowKey, bool) {
	switch w := w.(type) {
	case commit.Fence:
		key, _ := w.Fence()
		return rowKey{w.Table(), key}, true
	case interface{ Row() string }: // an unfenced change of one row
		return rowKey{w.(commit.Write).Table(), w.Row()}, true
	}
	return rowKey{}, false
}

// commit makes units durable and answers each of them.
func (w *writer) commit(units []*unit) {
	for len(units) > 0 {
		began := time.Now()
		failed, done, err := w.once(units)
		var mixed mixedBatch
		switch {
		case errors.As(err, &mixed):
			w.commit(mixed.statements)
			units = mixed.functions
			continue
		case err != nil && len(units) > 1 && !down(err):
			for _, u := range units {
				w.commit([]*unit{u})
			}
			return
		case err != nil:
			for _, u := range units {
				u.done <- err
			}
			return
		case len(failed) == 0:
			done.Units, done.Took = len(units), time.Since(began)
			w.committed(units, done)
			return
		}
		// Fences failed: those units get the error, the others start over.
		rest := units[:0]
		for i, u := range units {
			if failed[i] {
				u.done <- commit.ErrFenced
			} else {
				rest = append(rest, u)
			}
		}
		units = rest
	}
}

func (w *writer) committed(units []*unit, done Committed) {
	w.batches.Add(1)
	w.units.Add(int64(len(units)))
	if observe := w.observe.Load(); observe != nil {
		(*observe)(done)
	}
	for _, u := range units {
		u.size = len(units)
		u.done <- nil
	}
}

// down reports whether an error concerns the database: retrying single units does not help then. A movement that lost a
// race is UNAVAILABLE, too, and concerns only its own unit.
func down(err error) bool {
	return CauseOf(err) != "" || errors.Is(err, commit.ErrUnknown)
}

// mixedBatch is a batch in which some units run a function of their slice. Nothing of it was written: the others need
// not leave the executor because of them.
type mixedBatch struct{ statements, functions []*unit }

func (mixedBatch) Error() string { return "persistence: some units of the batch are no statements" }

func mixed(units []*unit, functions map[int]bool) (m mixedBatch) {
	for i, u := range units {
		if functions[i] {
			m.functions = append(m.functions, u)
		} else {
			m.statements = append(m.statements, u)
		}
	}
	return m
}

// once applies units in one transaction. If fences failed nothing is committed and the failed units are returned by
// index. A mixedBatch is returned as an error, untried.
func (w *writer) once(units []*unit) (failed map[int]bool, done Committed, err error) {
	ctx, cancel := w.db.Bound(context.Background())
	defer cancel()
	s := w.batch
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := w.outage.since(units[0].since); err != nil { // the first is the oldest
		return nil, done, err
	}
	began := time.Now()
	defer func() { w.outage.note(began, err, true) }()
	steps, err := s.stepsOf(units)
	if err != nil {
		return nil, done, Translate(err)
	}
	types, of := functions(steps)
	if 0 < len(of) && len(of) < len(units) {
		return nil, done, mixed(units, of)
	}
	undo := s.remember()
	s.bind(steps)
	w.db.trace.steps(ctx, steps)
	if len(of) == 0 {
		failed, err = w.db.executor.transact(ctx, steps, slices.ContainsFunc(units, (*unit).flushes))
	} else {
		failed, err = s.transact(ctx, w.db.write, steps)
	}
	return failed, Committed{Statements: count(steps), Functions: types}, s.ended(undo, failed, err)
}
