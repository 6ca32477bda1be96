package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/commit"
	"castellan/domain/fault"
)

// The commit path. One goroutine takes the units that are queued, at most
// maxBatch and never two that touch one row, and makes them durable in one
// transaction of prepared statements (statement.go): guards, then fenced
// updates in key order, then everything else. A unit whose fence fails leaves
// the batch with ErrFenced and the rest goes on; any other error rolls the
// batch back and runs its units one by one, so that only the faulty one fails.
const (
	maxBatch  = 256
	maxQueued = 8192
	maxPlans  = 64 // kinds of writes
	maxYields = 2  // of the processor, before a batch is closed
)

type unit struct {
	writes []commit.Write
	done   chan error
	size   int          // of the batch that it was committed with, set before done
	state  atomic.Int32 // queued → taken, or queued → abandoned by its caller
}

// flushes tells whether the unit has to be on the disk when it is committed.
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
	stop  chan struct{}
	ended sync.WaitGroup
	lanes chan *lane // of interactive transactions
	batch *lane

	batches, units atomic.Int64
	observe        atomic.Pointer[func(Committed)]
}

// Committed is a transaction of gathered units that was committed.
type Committed struct {
	Units, Statements int // a statement for many rows counts once
	Took              time.Duration
}

// OnCommit has observe told of every commit of gathered units, for metrics. It
// runs on the writer's goroutine and must not block.
func (db *DB) OnCommit(observe func(Committed)) { db.writer.observe.Store(&observe) }

// Batches counts the transactions of gathered units, for metrics.
func (db *DB) Batches() int64 { return db.writer.batches.Load() }

// Units counts the units of work that were made durable.
func (db *DB) Units() int64 { return db.writer.units.Load() }

// Waiting is the number of units that wait for the writer.
func (db *DB) Waiting() int { return len(db.writer.queue) }

// lane is a place where one transaction at a time runs: its audit chain is in
// its order (D-EXT-03).
type lane struct {
	mu       sync.Mutex
	tx       bun.Tx
	chain    chain
	postgres bool
}

var _ commit.Committer = (*DB)(nil)

func newWriter(db *DB) *writer {
	w := &writer{db: db, queue: make(chan *unit, maxQueued), stop: make(chan struct{}), batch: &lane{postgres: db.postgres()}}
	n := 4
	if !db.postgres() {
		n = 1
	}
	w.lanes = make(chan *lane, n)
	for range n {
		l := &lane{postgres: true}
		if !db.postgres() {
			l = w.batch // one connection, one chain
		}
		w.lanes <- l
	}
	return w
}

// Start begins to commit units. The audit key chains the audit rows; start
// names this process in them.
func (db *DB) Start(auditKey []byte, start string) {
	w := db.writer
	w.batch.chain = chain{name: start + "-0", mac: macOf(auditKey)}
	if db.postgres() {
		for i := range cap(w.lanes) {
			l := <-w.lanes
			l.chain = chain{name: fmt.Sprintf("%s-%d", start, i+1), mac: macOf(auditKey)}
			w.lanes <- l
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

// Commit implements commit.Committer.
func (db *DB) Commit(ctx context.Context, writes ...commit.Write) error {
	_, err := db.CommitGathered(ctx, writes...)
	return err
}

// CommitGathered is Commit that tells with how many units, this one included,
// the unit shared its transaction: 0 when nothing was committed, or when it is
// part of an interactive transaction.
func (db *DB) CommitGathered(ctx context.Context, writes ...commit.Write) (units int, err error) {
	if l, ok := ctx.Value(txKey{}).(*lane); ok {
		steps, err := stepsOf(l, []*unit{{writes: writes}})
		if err != nil {
			return 0, err
		}
		failed, err := apply(ctx, l, steps)
		if err == nil && len(failed) > 0 {
			err = commit.ErrFenced
		}
		return 0, translate(err)
	}
	if err := db.admitted(ctx); err != nil {
		return 0, err
	}
	u := &unit{writes: writes, done: make(chan error, 1)}
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

func (w *writer) run() {
	defer w.ended.Done()
	var later []*unit // met a row of the batch before them
	for {
		batch := make([]*unit, 0, 32)
		rows := map[rowKey]struct{}{}
		held := later
		later = nil
		admit := func(u *unit) {
			if u.state.Load() == abandoned {
				return
			}
			if len(batch) == maxBatch || !claim(rows, u) {
				later = append(later, u)
				return
			}
			if u.state.CompareAndSwap(queued, taken) {
				batch = append(batch, u)
			}
		}
		for _, u := range held {
			admit(u)
		}
		if len(batch) == 0 {
			select {
			case u := <-w.queue:
				admit(u)
			case <-w.stop:
				select {
				case u := <-w.queue: // finish what was queued before the stop
					admit(u)
				default:
					return
				}
			}
		}
	gather:
		// Whoever is about to queue a unit gets the processor first: a batch
		// costs much the same with more in it. Alone, nobody is waited for.
		for yielded := 0; len(batch) < maxBatch; {
			select {
			case u := <-w.queue:
				admit(u)
				yielded = 0
			default:
				if yielded++; yielded > maxYields {
					break gather
				}
				runtime.Gosched()
			}
		}
		if len(batch) > 0 {
			w.commit(batch)
		}
	}
}

type rowKey struct{ table, key string }

// claim takes the fenced rows of u for the batch; false when one is taken.
func claim(rows map[rowKey]struct{}, u *unit) bool {
	for _, w := range u.writes {
		if k, ok := fencedRow(w); ok {
			if _, taken := rows[k]; taken {
				return false
			}
		}
	}
	for _, w := range u.writes {
		if k, ok := fencedRow(w); ok {
			rows[k] = struct{}{}
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

func (w *writer) commit(batch []*unit) {
	for len(batch) > 0 {
		began := time.Now()
		failed, statements, err := w.once(batch)
		switch {
		case err != nil && len(batch) > 1 && !down(err):
			for _, u := range batch {
				w.commit([]*unit{u})
			}
			return
		case err != nil:
			for _, u := range batch {
				u.done <- err
			}
			return
		case len(failed) == 0:
			w.batches.Add(1)
			w.units.Add(int64(len(batch)))
			if observe := w.observe.Load(); observe != nil {
				(*observe)(Committed{Units: len(batch), Statements: statements, Took: time.Since(began)})
			}
			for _, u := range batch {
				u.size = len(batch)
				u.done <- nil
			}
			return
		}
		// Fences failed: those units are told, the others start over.
		rest := batch[:0]
		for i, u := range batch {
			if failed[i] {
				u.done <- commit.ErrFenced
			} else {
				rest = append(rest, u)
			}
		}
		batch = rest
	}
}

// down tells errors of the connection, which no retry of single units mends.
func down(err error) bool {
	return fault.CodeOf(err) == fault.Unavailable || errors.Is(err, commit.ErrUnknown)
}

// once applies a batch in one transaction. When fences failed nothing is
// committed and the failed units are named by index.
func (w *writer) once(batch []*unit) (failed map[int]bool, statements int, err error) {
	ctx, cancel := w.db.bound(context.Background())
	defer cancel()
	l := w.batch
	l.mu.Lock()
	defer l.mu.Unlock()
	head := l.chain
	steps, err := stepsOf(l, batch)
	if err == nil {
		w.db.trace.steps(ctx, steps)
		if common(steps) {
			failed, err = w.db.common.transact(ctx, steps, slices.ContainsFunc(batch, (*unit).flushes))
			return failed, count(steps), l.ended(head, failed, err)
		}
	}
	if err == nil {
		l.tx, err = w.db.write.BeginTx(ctx, nil)
	}
	if err == nil {
		failed, err = apply(ctx, l, steps)
		if err != nil || len(failed) > 0 {
			l.tx.Rollback()
		} else if err = l.tx.Commit(); err != nil {
			err = undecided{err}
		}
	}
	return failed, count(steps), l.ended(head, failed, err)
}

// count is how many statements steps are made of.
func count(steps []step) (n int) {
	for i := range steps {
		n += max(1, len(steps[i].calls)) // a plan of its own making counts as one
	}
	return n
}

// undecided is an error of COMMIT itself.
type undecided struct{ error }

func (e undecided) Unwrap() error { return e.error }

// ended puts the audit chain back where it was unless the transaction was
// committed, and translates its error. An error of COMMIT leaves its fate
// unknown unless the database said that it rolled back.
func (l *lane) ended(head chain, failed map[int]bool, err error) error {
	if err == nil && len(failed) == 0 {
		return nil
	}
	l.chain = head
	var u undecided
	if !errors.As(err, &u) {
		return translate(err)
	}
	l.chain.forget()
	t := translate(u.error)
	if fault.CodeOf(t) == fault.Unavailable {
		slog.Warn("fate of a commit is unknown", "err", u.error)
		return fmt.Errorf("%w: %w", commit.ErrUnknown, t)
	}
	return t
}

// Admit has check asked before anything is written. What it refuses is not
// written; its errors are those of Commit and InTx. It is called before the first
// of them.
func (db *DB) Admit(check func(ctx context.Context) error) { db.admit = check }

func (db *DB) admitted(ctx context.Context) error {
	if db.admit == nil {
		return nil
	}
	return db.admit(ctx)
}

// InTx implements commit.Committer.
func (db *DB) InTx(ctx context.Context, fn func(context.Context) error) (err error) {
	if _, nested := ctx.Value(txKey{}).(*lane); nested {
		return fn(ctx)
	}
	if err := db.admitted(ctx); err != nil {
		return err
	}
	if db.postgres() {
		var ended context.CancelFunc
		ctx, ended = db.pulse.until(ctx)
		defer ended()
	}
	var l *lane
	select {
	case l = <-db.lanes:
	case <-ctx.Done():
		return translate(ctx.Err())
	}
	defer func() { db.lanes <- l }()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tx, err = db.write.BeginTx(ctx, &sql.TxOptions{}); err != nil {
		return translate(err)
	}
	head := l.chain
	defer func() {
		if p := recover(); p != nil {
			l.tx.Rollback()
			l.chain = head
			panic(p)
		}
	}()
	if err = fn(context.WithValue(ctx, txKey{}, l)); err == nil {
		err = db.admitted(ctx)
	}
	if err != nil {
		l.tx.Rollback()
	} else if err = l.tx.Commit(); err != nil {
		err = undecided{err}
	}
	return l.ended(head, nil, err)
}

// step is what one plan makes of a batch.
type step struct {
	plan   *plan
	writes []commit.Write
	units  []int // of each write
	calls  []call
}

// stepsOf sorts the writes of units into the steps of a transaction.
func stepsOf(l *lane, units []*unit) ([]step, error) {
	var byOrder [maxPlans]step
	for i, u := range units {
		for _, w := range u.writes {
			p := planOf(w)
			if p == nil {
				if isUnflushed(w) {
					continue
				}
				return nil, fmt.Errorf("persistence: no plan for %T", w)
			}
			s := &byOrder[p.order]
			s.plan = p
			s.writes = append(s.writes, w)
			s.units = append(s.units, i)
		}
	}
	steps := slices.DeleteFunc(byOrder[:], func(s step) bool { return s.plan == nil })
	for i := range steps {
		if s := &steps[i]; s.plan.calls != nil {
			s.calls = s.plan.calls(l, s.writes)
		}
	}
	return steps, nil
}

// common tells whether all steps are made of statements.
func common(steps []step) bool {
	return !slices.ContainsFunc(steps, func(s step) bool { return s.plan.calls == nil })
}

// apply runs steps one after the other in l's transaction. It ends after the
// fences when one of them failed: nothing is kept then, and a row of the
// winner's would look like a duplicate.
func apply(ctx context.Context, l *lane, steps []step) (failed map[int]bool, err error) {
	for i := range steps {
		s := &steps[i]
		if len(failed) > 0 && s.plan.order >= firstWrite {
			break
		}
		var missing []int
		if s.plan.calls == nil {
			missing, err = s.plan.apply(ctx, l, s.writes)
		}
		for j := 0; j < len(s.calls) && err == nil; j++ {
			var more []int
			more, err = l.run(ctx, &s.calls[j])
			missing = append(missing, more...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.writes[0].Table(), err)
		}
		s.refuse(&failed, missing)
	}
	return failed, nil
}

// refuse notes the units of writes that were refused.
func (s *step) refuse(failed *map[int]bool, missing []int) {
	for _, m := range missing {
		if *failed == nil {
			*failed = map[int]bool{}
		}
		(*failed)[s.units[m]] = true
	}
}

// plan makes one type of Write: by statements where it is common, by apply
// where it is not. Either reports the indexes of writes whose fence or guard
// failed.
type plan struct {
	order int
	calls func(l *lane, ws []commit.Write) []call
	apply func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error)
}

var plans = map[reflect.Type]*plan{}

// firstWrite is the order of the first plan that is neither guard nor fence.
var firstWrite int

func planOf(w commit.Write) *plan { return plans[reflect.TypeOf(w)] }

// register adds plans in the order in which their statements run. The slices
// of a transaction's statements are ordered by it: guards and fences first.
func register(ps ...planFor) {
	for _, p := range ps {
		if plans[p.write] != nil {
			panic("persistence: two plans for " + p.write.String())
		}
		if len(plans) == maxPlans {
			panic("persistence: more kinds of writes than maxPlans")
		}
		p.order = len(plans)
		plans[p.write] = &p.plan
	}
}

type planFor struct {
	write reflect.Type
	plan
}

// The statements of a transaction run in this order: guards first, then every
// slice's fences, then what cannot be refused. A slice adds its two lists here.
func init() {
	register(guards)
	register(challengeFences...)
	register(passwordFences...)
	register(userFences...)
	register(totpFences...)
	register(resetFences...)
	register(cronKeyFences...)
	register(deviceFences...)

	firstWrite = len(plans)
	register(challengeWrites...)
	register(outboxWrites...)
	register(auditWrites...)
	register(changeWrites...)
	register(idempotencyWrites...)
	register(passwordWrites...)
	register(userWrites...)
	register(sessionWrites...)
	register(totpWrites...)
	register(resetWrites...)
	register(cronKeyWrites...)
	register(geofilterWrites...)
	register(allowedIPWrites...)
	register(deviceWrites...)
}
