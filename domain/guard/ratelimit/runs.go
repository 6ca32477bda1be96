package ratelimit

// Forget removes an admission at exactly that instant, because another key has refused the request. It reports
// whether it found one.
func (w *Window) Forget(instant int64) bool {
	if w.coarse != nil {
		for i := w.n - 1; i >= 0; i-- {
			if b := w.bucket(i); b.first <= instant && instant <= b.last && b.count > 0 {
				b.count--
				w.total--
				return true
			}
		}
		return false
	}
	for i := w.n - 1; i >= 0 && w.at(i) >= instant; i-- {
		if w.at(i) > instant {
			continue
		}
		for ; i+1 < w.n; i++ {
			w.ring[w.slot(i)] = w.ring[w.slot(i+1)]
		}
		w.n--
		return true
	}
	return false
}

// ForgetUntil removes the admissions at or before an instant.
func (w *Window) ForgetUntil(instant int64) {
	if w.coarse != nil {
		for w.n > 0 && w.bucket(0).last <= instant {
			w.total -= w.bucket(0).count
			w.head = (w.head + 1) % len(w.coarse)
			w.n--
		}
		return
	}
	if gone := w.countExpired(instant); gone > 0 {
		w.head, w.n = w.slot(gone), w.n-gone
	}
}

// waitFor returns the time in nanoseconds until cost more may be admitted, which are not yet; a period if they never
// may. Look was called before. A nil window has no admission.
func (w *Window) waitFor(cost, now int64, r Quota) int64 {
	switch {
	case cost > r.Limit || w == nil:
		return r.Period
	case w.coarse == nil:
		return max(1, w.at(w.n-int(r.Limit-cost)-1)+r.Period-now)
	}
	i := 0
	for left := w.total - w.bucket(0).count; left+cost > r.Limit; i++ {
		left -= w.bucket(i + 1).count
	}
	return max(1, w.bucket(i).last+r.Period-now)
}

// ForgetNewest removes the latest admission.
func (w *Window) ForgetNewest() bool {
	switch {
	case w.n == 0:
		return false
	case w.coarse != nil:
		i := w.n - 1
		for i > 0 && w.bucket(i).count == 0 { // all of them were forgotten
			i--
		}
		return w.Forget(w.bucket(i).last)
	}
	return w.Forget(w.at(w.n - 1))
}

// Runs calls yield with the remembered admissions, oldest first: each instant, and its number of admissions.
func (w *Window) Runs(yield func(instant, count int64)) {
	for i := range w.n {
		if w.coarse != nil {
			if b := w.bucket(i); b.count > 0 {
				yield(b.last, b.count)
			}
			continue
		}
		yield(w.at(i), 1)
	}
}

// Coarse reports whether admissions share buckets.
func (w *Window) Coarse() bool { return w.coarse != nil }

// Period returns the period of the rule of the last admission, in nanoseconds.
func (w *Window) Period() int64 { return w.period }

// Add remembers count admissions at now + ahead, or at the instant of the last admission if that is later. ahead may
// be negative. It returns the instant. Two nodes may have admitted more than the limit together: up to MaxExact of what
// still counts is kept.
func (w *Window) Add(now, ahead, count int64, r Quota) int64 {
	instant := now + ahead
	if w.some {
		instant = max(instant, w.newest)
	}
	if count <= 0 {
		return instant
	}
	w.lead = max(w.lead, instant-now)
	if r.Limit > MaxExact {
		w.Admit(instant, r)
		w.bucket(w.n - 1).count += count - 1
		w.total += count - 1
		return instant
	}
	for range count {
		if n := int64(w.n); n >= r.Limit && w.n == len(w.ring) && w.at(0) > instant-r.Period {
			r.Limit = min(n+16, MaxExact) // room for more
		}
		w.Admit(instant, r)
	}
	return instant
}
