package change

import (
	"context"
	"sync/atomic"
	"time"
)

// How the feed is read (D-AUTH-01). Notes of the last Overlap are read again
// and de-duplicated, because they may become visible out of order; a node that
// could not read for Patience does not know any more whether its caches hold.
const (
	Every    = 250 * time.Millisecond
	Overlap  = 10 * time.Second
	Patience = 3 * time.Second
)

// Reader follows the feed for one node and tells its caches.
type Reader struct {
	store    Store
	now      func() time.Time
	handlers map[Topic]func(ctx context.Context, key string) error
	seen     map[int64]time.Time
	read     atomic.Int64 // ms of the last good read
}

// NewReader returns a reader; On adds what it tells, Poll reads once.
func NewReader(s Store, now func() time.Time) *Reader {
	return &Reader{store: s, now: now, handlers: map[Topic]func(context.Context, string) error{}, seen: map[int64]time.Time{}}
}

// On has apply called for every note of a topic. It may be called twice for
// one note and must not mind.
func (r *Reader) On(t Topic, apply func(ctx context.Context, key string) error) {
	r.handlers[t] = apply
}

// Poll reads the feed once. What a handler could not apply is tried again at
// the next poll, and the read does not count as a good one.
func (r *Reader) Poll(ctx context.Context) error {
	now := r.now()
	entries, err := r.store.Since(ctx, now.Add(-Overlap))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, known := r.seen[e.ID]; known {
			continue
		}
		if apply := r.handlers[e.Topic]; apply != nil {
			if err := apply(ctx, e.Key); err != nil {
				return err
			}
		}
		r.seen[e.ID] = e.At
	}
	for id, at := range r.seen {
		if now.Sub(at) > 2*Overlap {
			delete(r.seen, id)
		}
	}
	r.read.Store(now.UnixMilli())
	return nil
}

// Fresh reports whether the feed was read within Patience.
func (r *Reader) Fresh() bool { return r.now().UnixMilli()-r.read.Load() <= Patience.Milliseconds() }

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
