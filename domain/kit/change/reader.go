package change

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Times of reading the feed (D-AUTH-01). A change is in force on every node within Bound: a node whose last read is
// older does not serve from its caches until it has read the feed again. Notes of the last Overlap are read again and
// de-duplicated, because they may become visible out of order. Notes are deleted after Kept.
const (
	Every    = 250 * time.Millisecond
	Retry    = 50 * time.Millisecond // after a failed read
	Bound    = time.Second
	Overlap  = 10 * time.Second
	Patience = 1500 * time.Millisecond // limit of the query, and of a caller that waits for a read
	Kept     = time.Hour
)

// Reader follows the feed for one node and notifies its caches. Reads run one at a time, and waiting callers share one.
// It is safe for concurrent use once On and OnGap have been called.
type Reader struct {
	store    Store
	now      func() time.Time
	handlers map[Topic]func(ctx context.Context, keys ...string) error
	gap      func(ctx context.Context) error
	reads    turns[query]
	seen     map[int64]time.Time // only used by the running read
	began    time.Time
	mark     atomic.Pointer[time.Time] // when the last good read began
	failed   atomic.Pointer[time.Time] // when the last read ended, if it failed
}

// query holds the options of one read of the feed.
type query struct{ patient bool }

// NewReader returns a reader; On registers its caches. Fill the caches after that, or they miss concurrent writes.
func NewReader(s Store, now func() time.Time) *Reader {
	r := &Reader{store: s, now: now, handlers: map[Topic]func(context.Context, ...string) error{},
		seen: map[int64]time.Time{}, began: now()}
	// A cache may take longer than a query, and notes it has applied are not delivered again. The caches bound their
	// own reads, so that these end.
	r.reads.work, r.reads.limit = r.read, 2*ReadTime
	return r
}

// On registers apply for the notes of a topic. It is called once per read with the keys of all notes found. A key may
// be repeated, even within one call.
func (r *Reader) On(t Topic, apply func(ctx context.Context, keys ...string) error) {
	r.handlers[t] = apply
}

// OnGap registers reload, which runs if notes may have been purged unread because the feed was unreadable for too long:
// the caches must be read again.
func (r *Reader) OnGap(reload func(ctx context.Context) error) { r.gap = reload }

// Poll waits for a read that begins after the call: every cache then holds everything committed before the call. Notes
// that a handler failed to apply are retried at the next read, and the read does not count as a good one.
func (r *Reader) Poll(ctx context.Context) error { return r.reads.do(ctx, nil) }

// First is Poll at the start of the node, before any caller waits for a response: the query may take ReadTime.
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

// apply notifies the caches of everything written since Overlap before the last good read, however long ago that was.
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
		if err := r.notifyCache(ctx, t, fresh[t]); err != nil {
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

// since queries the feed with a limit of its own. A cache may need longer for the notes, and completing a read is
// better than starting it again.
func (r *Reader) since(ctx context.Context, from time.Time, limit time.Duration) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.store.Since(ctx, from)
}

// notifyCache passes the notes of one topic to its cache.
func (r *Reader) notifyCache(ctx context.Context, t Topic, notes []Entry) error {
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

// patiently lets a cache read its rows. A slow cache may be waiting for a database that does not respond. Reads of the
// feed detect that, so one runs meanwhile.
func (r *Reader) patiently(ctx context.Context, do func(context.Context) error) error {
	probe := time.AfterFunc(Every, func() { _, _ = r.since(ctx, r.now(), Patience) })
	defer probe.Stop()
	return do(ctx)
}

// age is the time since an instant, by the clock that reports more: the monotonic clock stops while a machine sleeps,
// and the wall clock may be set back.
func age(now, then time.Time) time.Duration {
	return max(now.Sub(then), time.Duration(now.UnixMilli()-then.UnixMilli())*time.Millisecond)
}

// Mark returns the instant up to which every change is known; zero before the first read.
func (r *Reader) Mark() time.Time {
	if m := r.mark.Load(); m != nil {
		return *m
	}
	return time.Time{}
}

// Holds reports whether a decision made after mark still counts. The caller takes the mark, decides, and then calls
// Holds. A process may be paused between any two steps, and the feed may be read before the process notices the pause.
func (r *Reader) Holds(mark time.Time) bool {
	return !mark.IsZero() && age(r.now(), mark) < Bound
}

// Fresh reports whether every change written before Bound is known.
func (r *Reader) Fresh() bool { return r.Holds(r.Mark()) }

// ErrFailed says that the feed could not be read a moment ago.
var ErrFailed = errors.New("change: the feed cannot be read")

// CatchUp waits until the reader is Fresh, no longer than Patience. Callers share the running read. If the last read
// failed, they get the error at once while Run retries. After an error the caches must not be used for decisions.
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

// failing becomes false after a while without Run.
func (r *Reader) failing() bool {
	f := r.failed.Load()
	return f != nil && age(r.now(), *f) < 2*Patience
}

// Run reads the feed until ctx ends. report receives the first error of each series of errors.
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
