package policy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// HitStore keeps how often versions of rules asked for something, by hour. It is safe for concurrent use.
type HitStore interface {
	// AddHits adds counts to the hour of an instant.
	AddHits(ctx context.Context, at time.Time, counts map[Named]int64) error
	// Hits returns the sums of the hours from that of an instant on. Versions without hits are left out.
	Hits(ctx context.Context, since time.Time) (map[Named]int64, error)
}

// Hits counts on this node how often rules asked for something, or would have on trial. A movement costs no statement:
// Flush stores the counts, so those since the last one are lost if the node is killed. The zero value is ready, and a
// nil one counts nothing. It is safe for concurrent use.
type Hits struct {
	mu     sync.Mutex
	counts map[Named]int64
}

// Add counts the rules of a verdict.
func (h *Hits) Add(v Verdict) {
	if h == nil || len(v.Rules)+len(v.Trial) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range [][]Named{v.Rules, v.Trial} {
		for _, n := range all {
			h.add(n, 1)
		}
	}
}

// add counts a rule. The caller holds the lock.
func (h *Hits) add(n Named, count int64) {
	if h.counts == nil {
		h.counts = map[Named]int64{}
	}
	h.counts[n] += count
}

// Flush stores the counts since the last call, in the hour of now. After an error they are kept for the next call. They
// count twice if the store had committed them.
func (h *Hits) Flush(ctx context.Context, store HitStore, now time.Time) error {
	h.mu.Lock()
	counts := h.counts
	h.counts = nil
	h.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	err := store.AddHits(ctx, now, counts)
	if err == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, c := range counts {
		h.add(n, c)
	}
	return err
}

// Counted reports whether the hits of a rule are counted. On trial, rules with sums are not, because no sum is read for
// them, and neither are those for decisions and settings.
func (r Rule) Counted() bool {
	return r.Status != Trial ||
		len(r.Match.Sums) == 0 && !slices.Contains(r.Kinds, Decision) && !slices.Contains(r.Kinds, Setting)
}
