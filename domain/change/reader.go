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
	Bound    = time.Second
	Overlap  = 10 * time.Second
	Patience = 1500 * time.Millisecond // of one read
	Kept     = time.Hour
)

// Reader follows the feed for one node and tells its caches. It is safe for
// concurrent use once On and OnGap have been called.
type Reader struct {
	store    Store
	now      func() time.Time
	handlers map[Topic]func(ctx context.Context, key string) error
	gap      func(ctx context.Context) error
	turn     chan struct{} // held by whoever reads; guards seen
	seen     map[int64]time.Time
	began    time.Time
	mark     atomic.Pointer[time.Time] // when the last good read began
	failed   atomic.Pointer[time.Time] // when the last read ended, if it failed
}

// NewReader returns a reader; On adds what it tells, Poll reads once. Caches are
// filled after that, or they miss what is written meanwhile.
func NewReader(s Store, now func() time.Time) *Reader {
	return &Reader{store: s, now: now, handlers: map[Topic]func(context.Context, string) error{}, seen: map[int64]time.Time{},
		turn: make(chan struct{}, 1), began: now()}
}

// On has apply called for every note of a topic. It may be called twice for
// one note and must not mind.
func (r *Reader) On(t Topic, apply func(ctx context.Context, key string) error) {
	r.handlers[t] = apply
}

// OnGap has reload called when notes may have been purged unread, because the
// feed could not be read for so long: what the caches hold is to be read anew.
func (r *Reader) OnGap(reload func(ctx context.Context) error) { r.gap = reload }

// Poll reads the feed once. What a handler could not apply is tried again at
// the next poll, and the read does not count as a good one.
func (r *Reader) Poll(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	return r.poll(ctx)
}

func (r *Reader) poll(ctx context.Context) error {
	began := r.now()
	if err := r.read(ctx, began); err != nil {
		ended := r.now()
		r.failed.Store(&ended)
		return err
	}
	r.mark.Store(&began)
	r.failed.Store(nil)
	return nil
}

// read applies what was written since Overlap before the last good read,
// however long ago that was.
func (r *Reader) read(ctx context.Context, now time.Time) error {
	last := r.began
	if m := r.mark.Load(); m != nil {
		last = *m
	}
	if age(now, last) > Kept/2 && r.gap != nil {
		if err := r.patiently(ctx, func() error { return r.gap(ctx) }); err != nil {
			return err
		}
	}
	from := now.Add(-max(Overlap, age(now, last)+Overlap))
	entries, err := r.store.Since(ctx, from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, known := r.seen[e.ID]; known {
			continue
		}
		if apply := r.handlers[e.Topic]; apply != nil {
			if err := r.patiently(ctx, func() error { return apply(ctx, e.Key) }); err != nil {
				return err
			}
		}
		r.seen[e.ID] = e.At
	}
	for id, at := range r.seen {
		if from.Sub(at) > Overlap {
			delete(r.seen, id)
		}
	}
	return nil
}

// patiently has a cache read what it needs. One that takes long may be waiting
// for a database that says nothing, which is noticed by reads of the feed: there
// is one meanwhile.
func (r *Reader) patiently(ctx context.Context, do func() error) error {
	probe := time.AfterFunc(Every, func() { _, _ = r.store.Since(ctx, r.now()) })
	defer probe.Stop()
	return do()
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

// Holds reports whether what was decided after mark was taken may be relied on
// now. Whoever asks takes the mark first, decides, and asks then: a process may
// be stopped between any two of its steps, and the feed may be read before it
// notices.
func (r *Reader) Holds(mark time.Time) bool {
	return !mark.IsZero() && age(r.now(), mark) < Bound
}

// Fresh reports whether everything is known that was told before Bound.
func (r *Reader) Fresh() bool { return r.Holds(r.Mark()) }

// ErrFailed says that the feed could not be read a moment ago.
var ErrFailed = errors.New("change: the feed cannot be read")

// CatchUp reads the feed unless it is Fresh. It takes no longer than Patience;
// those who call it at one time share one read, and after one that failed they
// are told so at once for a while: Run tries again meanwhile. An error says that
// nothing may be decided by the caches now.
func (r *Reader) CatchUp(ctx context.Context) error {
	if r.Fresh() {
		return nil
	}
	if r.failing() {
		return ErrFailed
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	switch {
	case r.Fresh():
		return nil
	case r.failing():
		return ErrFailed
	}
	return r.poll(ctx)
}

func (r *Reader) failing() bool {
	f := r.failed.Load()
	return f != nil && age(r.now(), *f) < 2*Patience
}

// Run polls until ctx ends; report is told of errors, once per run of them.
func (r *Reader) Run(ctx context.Context, report func(error)) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bound, cancel := context.WithTimeout(ctx, Patience)
		err := r.Poll(bound)
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			report(err)
		}
		failing = err != nil
	}
}
