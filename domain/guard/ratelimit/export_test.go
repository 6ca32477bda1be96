package ratelimit

// Slots returns the capacity in instants or buckets.
func (w *Window) Slots() int { return len(w.ring) + len(w.coarse) }
