package change

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// How the feed is read (D-AUTH-01). What a node was told of is in force within
// Bound: a node that knows less does not serve from its caches before it has
// read the feed again. Notes of the last Overlap are read again and
// de-duplicated, because they may become visible out of order. Notes are kept
// for Kept.
const (
	Every    = 250 * time.Millisecond
	Retry    = 50 * time.Millisecond // after a read that failed
	Bound    = time.Second
	Overlap  = 10 * time.Second
	Patience = 1500 * time.Millisecond // of the query, and of a caller that waits for a read
	Kept     = time.Hour
)

// Reader follows the feed for one node and tells its caches. Reads take turns,
// and callers that wait share one. It is safe for concurrent use once On and
// OnGap have been called.
type Reader struct {
	store    Store
	now      func() time.Time
	handlers map[Topic]func(ctx context.Context, keys ...string) error
	gap      func(ctx context.Context) error
	reads    turns[query]
	seen     map[int64]time.Time // touched by the read under way alone
	began    time.Time
	mark     atomic.Pointer[time.Time] // when the last good read began
	failed   atomic.Pointer[time.Time] // when the last read ended, if it failed
}

// query is how the feed is asked.
type query struct{ patient bool }

// NewReader returns a reader; On adds what it tells. Caches are filled after that,
// or they miss what is written meanwhile.
func NewReader(s Store, now func() time.Time) *Reader {
	r := &Reader{store: s, now: now, handlers: map[Topic]func(context.Context, ...string) error{},
		seen: map[int64]time.Time{}, began: now()}
	// A cache may take longer than a query, and what it has taken in is not asked
	// of it again. So that its readings end, they are bounded where they are made.
	r.reads.work, r.reads.limit = r.read, 2*ReadTime
	return r
}

// On has apply called with the keys of the notes of a topic: once for all that
// one read found. A key may come again, and twice in one call, and apply must not
// mind.
func (r *Reader) On(t Topic, apply func(ctx context.Context, keys ...string) error) {
	r.handlers[t] = apply
}

// OnGap has reload called when notes may have been purged unread, because the
// feed could not be read for so long: what the caches hold is to be read anew.
func (r *Reader) OnGap(reload func(ctx context.Context) error) { r.gap = reload }

// Poll waits for a read that begins after the call: every cache knows then what
// was committed before it. What a handler could not apply is tried again at the
// next read, and the read does not count as a good one.
func (r *Reader) Poll(ctx context.Context) error { return r.reads.do(ctx, nil) }

// First is Poll at the start of the node, when nobody waits for an answer yet: the
// query may take ReadTime.
func (r *Reader) First(ctx context.Context) error {
	return r.reads.do(ctx, func(q *query) { q.patient = true })
}

func (r *Reader) read(ctx context.Context, q query) error {
	began := r.now()
	limit := Patience
	if q.patient {
		limit = ReadTime
	}
	if err := r.apply(ctx, began, limit); err != nil {
		ended := r.now()
		r.failed.Store(&ended)
		return err
	}
	r.mark.Store(&began)
	r.failed.Store(nil)
	return nil
}

// apply tells the caches of everything that was written since Overlap before the
// last good read, however long ago that was.
func (r *Reader) apply(ctx context.Context, now time.Time, limit time.Duration) error {
	last := r.began
	if m := r.mark.Load(); m != nil {
		last = *m
	}
	if age(now, last) > Kept/2 && r.gap != nil {
		if err := r.patiently(ctx, r.gap); err != nil {
			return err
		}
	}
	from := now.Add(-max(Overlap, age(now, last)+Overlap))
	entries, err := r.since(ctx, from, limit)
	if err != nil {
		return err
	}
	fresh, topics := map[Topic][]Entry{}, []Topic(nil)
	for _, e := range entries {
		if _, known := r.seen[e.ID]; known {
			continue
		}
		if fresh[e.Topic] == nil {
			topics = append(topics, e.Topic)
		}
		fresh[e.Topic] = append(fresh[e.Topic], e)
	}
	for _, t := range topics {
		if err := r.tell(ctx, t, fresh[t]); err != nil {
			return err
		}
	}
	for id, at := range r.seen {
		if from.Sub(at) > Overlap {
			delete(r.seen, id)
		}
	}
	return nil
}

// since is the query, and has a limit of its own: a cache may take longer with the
// notes, and a read that comes to an end is worth more than one that is begun
// again.
func (r *Reader) since(ctx context.Context, from time.Time, limit time.Duration) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.store.Since(ctx, from)
}

// tell has one topic's cache take in its notes.
func (r *Reader) tell(ctx context.Context, t Topic, notes []Entry) error {
	if apply := r.handlers[t]; apply != nil {
		keys := make([]string, len(notes))
		for i, e := range notes {
			keys[i] = e.Key
		}
		if err := r.patiently(ctx, func(ctx context.Context) error { return apply(ctx, keys...) }); err != nil {
			return err
		}
	}
	for _, e := range notes {
		r.seen[e.ID] = e.At
	}
	return nil
}

// patiently has a cache read what it needs. A cache that takes long may be
// waiting for a database that says nothing, which reads of the feed notice: there
// is one meanwhile.
func (r *Reader) patiently(ctx context.Context, do func(context.Context) error) error {
	probe := time.AfterFunc(Every, func() { _, _ = r.since(ctx, r.now(), Patience) })
	defer probe.Stop()
	return do(ctx)
}

// age is how long ago an instant was by the clock that says the longer: the
// monotonic one stands still while a machine sleeps, the other one may be set back.
func age(now, then time.Time) time.Duration {
	return max(now.Sub(then), time.Duration(now.UnixMilli()-then.UnixMilli())*time.Millisecond)
}

// Mark is the instant of which everything is known; the zero one when nothing
// was read yet.
func (r *Reader) Mark() time.Time {
	if m := r.mark.Load(); m != nil {
		return *m
	}
	return time.Time{}
}

// Holds reports whether a decision that was made after mark still counts. The
// caller takes the mark, decides, and then asks: a process may be paused between
// any two steps, and the feed may be read before the process notices the pause.
func (r *Reader) Holds(mark time.Time) bool {
	return !mark.IsZero() && age(r.now(), mark) < Bound
}

// Fresh reports whether everything is known that was told before Bound.
func (r *Reader) Fresh() bool { return r.Holds(r.Mark()) }

// ErrFailed says that the feed could not be read a moment ago.
var ErrFailed = errors.New("change: the feed cannot be read")

// CatchUp waits until the reader is Fresh, no longer than Patience. Callers share
// the read that is under way; while the last read is one that failed they are
// told so at once, and Run tries again meanwhile. An error says that nothing may
// be decided by the caches now.
func (r *Reader) CatchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for !r.Fresh() {
		if r.failing() {
			return ErrFailed
		}
		if err := r.reads.join(ctx); err != nil {
			return err
		}
	}
	return nil
}

// failing is false again after a while without Run.
func (r *Reader) failing() bool {
	f := r.failed.Load()
	return f != nil && age(r.now(), *f) < 2*Patience
}

// Run reads the feed until ctx ends; report is told of errors, once per run of
// them.
func (r *Reader) Run(ctx context.Context, report func(error)) {
	failing := false
	for pause := Every; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		began := time.Now()
		err := r.Poll(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			report(err)
		}
		pause = max(0, Every-time.Since(began))
		if failing = err != nil; failing {
			pause = Retry
		}
	}
}
