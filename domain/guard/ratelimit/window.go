// Package ratelimit implements the rule of rate limits (section 4.5 of the interface, D-WAF-10): at most limit
// admissions in any half-open span (t − period, t], for every instant t. Only admissions count; a refusal leaves no
// trace. The package does not depend on the rules of the firewall: those name a Key, and the Limiter counts under it.
//
// The one idea: a request may be admitted exactly when the limit-th most recent admission has left the window. So the
// last limit instants decide without an error, and give the time of the next admission to the nanosecond. Up to
// MaxExact instants are kept, eight bytes each. Beyond that, close admissions share a bucket, which leaves the window
// as late as its last one. Such a window may refuse a little early and never admits one too many.
//
// A Window is a plain value without a clock or a lock: instants are nanoseconds since any fixed one. Start reading at
// Look and Admit; then Limiter, the contract, and Table, its implementation in the memory of one node.
package ratelimit

import "math"

// MaxExact is the largest limit whose admissions are remembered one by one.
const MaxExact = 4096

// grains is the number of buckets in a period for a limit above MaxExact.
const grains = 2048

// Quota holds the limit and the period of a window. If it changes between two calls, the new one applies to the
// remembered admissions.
type Quota struct {
	Limit  int64 // admissions in any period, at least 1
	Period int64 // nanoseconds, at least 1
}

// Standing is the state of a window at an instant.
type Standing struct {
	Used int64 // admissions that count
	// Reset is the time in nanoseconds until the oldest of them leaves; 0 without any.
	Reset int64
	// Retry is the time in nanoseconds until one more may be admitted; 0: now.
	Retry int64
	// Sharing is how to count the request, if not Alone.
	Sharing Sharing
}

// Window remembers admissions. The zero value has none.
type Window struct {
	ring   []int64 // instants, oldest at head; the capacity of the ring is its length
	coarse []bucket
	head   int // index in the ring in use
	n      int
	total  int64 // admissions in coarse
	newest int64
	some   bool  // newest is an admission
	period int64 // of the rule of the last admission, for Idle
	lead   int64 // the largest lead of the newest over now when it was added
	// sharedUntil is until when the wider key counts its requests, too.
	sharedUntil int64
}

// bucket holds the admissions of one grain.
type bucket struct{ first, last, count int64 }

// Look returns the state of the window at now. An instant before the last admission is replaced by that one, unless
// the admission was counted ahead: a clock may step back, a window does not.
func (w *Window) Look(now int64, r Quota) (s Standing) {
	if !w.some {
		return s
	}
	now = max(now, w.newest-w.lead)
	w.shape(r)
	if r.Limit > MaxExact {
		return w.lookCoarse(now, r)
	}
	gone := w.countExpired(now - r.Period)
	if s.Used = int64(w.n - gone); s.Used == 0 {
		return s
	}
	s.Reset = w.at(gone) + r.Period - now
	if s.Used >= r.Limit {
		s.Retry = w.at(w.n-int(r.Limit)) + r.Period - now
	}
	return s
}

// Admit remembers an admission at now, or at the instant of the last one if that is later. The caller must have
// called Look before.
func (w *Window) Admit(now int64, r Quota) {
	if w.some {
		now = max(now, w.newest)
	}
	w.shape(r)
	w.newest, w.some, w.period = now, true, r.Period
	if r.Limit > MaxExact {
		w.admitCoarse(now, r)
		return
	}
	if w.n == len(w.ring) && int64(w.n) < r.Limit {
		w.grow(now-r.Period, r.Limit)
	}
	if w.n == len(w.ring) {
		w.ring[w.head] = now
		if w.head++; w.head == len(w.ring) {
			w.head = 0
		}
		return
	}
	w.n++
	w.ring[w.slot(w.n-1)] = now
}

// Idle reports whether no remembered admission counts any more by the rule of the last admission. Such a window can
// be deleted.
func (w *Window) Idle(now int64) bool { return w.Deadline() <= now }

// Deadline returns the instant from which on the window is idle.
func (w *Window) Deadline() int64 {
	if !w.some {
		return math.MinInt64
	}
	return w.newest + w.period
}

// at returns the i-th instant, oldest first; slot returns its index.
func (w *Window) at(i int) int64 { return w.ring[w.slot(i)] }

func (w *Window) slot(i int) int {
	if i += w.head; i >= len(w.ring) {
		i -= len(w.ring)
	}
	return i
}

// countExpired counts the instants at or before edge.
func (w *Window) countExpired(edge int64) int {
	if w.n == 0 || w.at(0) > edge { // the common cases: all count, none does
		return 0
	}
	if w.newest <= edge {
		return w.n
	}
	low, high := 0, w.n
	for low < high {
		if mid := int(uint(low+high) >> 1); w.at(mid) <= edge {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// grow makes room for one more instant. It first drops instants that have left the window, so a rarely used key stays
// small.
func (w *Window) grow(edge, limit int64) {
	gone := w.countExpired(edge)
	left := w.n - gone
	size := len(w.ring)
	if left > size/2 || size == 0 {
		size = max(4, 2*size)
	}
	w.resize(gone, min(size, int(limit)))
}

// resize keeps the newest instants that fit, without the first gone ones.
func (w *Window) resize(gone, size int) {
	from := max(gone, w.n-size)
	next := make([]int64, size)
	for i := from; i < w.n; i++ {
		next[i-from] = w.at(i)
	}
	w.ring, w.head, w.n = next, 0, w.n-from
}

// shape converts the remembered admissions to the form that the limit needs.
func (w *Window) shape(r Quota) {
	switch {
	case r.Limit > MaxExact && w.ring != nil:
		old := *w
		w.ring, w.head, w.n, w.total = nil, 0, 0, 0
		for i := range old.n {
			w.admitCoarse(old.at(i), r)
		}
	case r.Limit <= MaxExact && w.coarse != nil:
		old := *w
		w.coarse, w.head, w.n, w.total = nil, 0, 0, 0
		skip := old.total - MaxExact
		for i := range old.n {
			b := old.bucket(i)
			for range b.count {
				if skip--; skip < 0 {
					w.ring = append(w.ring, b.last)
				}
			}
		}
		w.n = len(w.ring)
	}
}

// Limits above MaxExact. A bucket counts until its last admission has left the window, so no admission is forgotten
// too early. A bucket holds the admissions of one grain of the period, so none is kept longer than a grain too long.

func (w *Window) bucket(i int) *bucket { return &w.coarse[(w.head+i)%len(w.coarse)] }

func (w *Window) lookCoarse(now int64, r Quota) (s Standing) {
	edge := now - r.Period
	for w.n > 0 && w.bucket(0).last <= edge {
		w.total -= w.bucket(0).count
		w.head = (w.head + 1) % len(w.coarse)
		w.n--
	}
	if s.Used = w.total; s.Used == 0 {
		return s
	}
	s.Reset = w.bucket(0).last - edge
	for i, left := 0, w.total; left >= r.Limit; i++ {
		b := w.bucket(i)
		left -= b.count
		s.Retry = b.last - edge
	}
	return s
}

func (w *Window) admitCoarse(now int64, r Quota) {
	w.total++
	if w.n > 0 {
		if b := w.bucket(w.n - 1); now-b.first < r.Period/grains {
			b.last = now
			b.count++
			return
		}
	}
	if w.n == len(w.coarse) {
		next := make([]bucket, max(4, 2*w.n))
		for i := range w.n {
			next[i] = *w.bucket(i)
		}
		w.coarse, w.head = next, 0
	}
	*w.bucket(w.n) = bucket{now, now, 1}
	w.n++
}
