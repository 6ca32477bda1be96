package ratelimit

// Slots is how many instants or buckets there is room for.
func (w *Window) Slots() int { return len(w.ring) + len(w.coarse) }
