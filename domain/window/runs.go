package window

// Forget takes back an admission at that very instant, of a request that was
// refused elsewhere after all. It reports whether there was one.
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

// ForgetNewest takes back the latest admission.
func (w *Window) ForgetNewest() bool {
	switch {
	case w.n == 0:
		return false
	case w.coarse != nil:
		return w.Forget(w.bucket(w.n - 1).last)
	}
	return w.Forget(w.at(w.n - 1))
}

// Runs calls yield with what is remembered, oldest first: how many admissions
// count as of an instant.
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

// Coarse tells whether admissions share buckets.
func (w *Window) Coarse() bool { return w.coarse != nil }

// Period is that of the rule of the last admission, in nanoseconds.
func (w *Window) Period() int64 { return w.period }

// Add remembers count admissions as of an instant, which is not before those
// that it has already.
func (w *Window) Add(instant, count int64, r Rule) {
	if count > 0 && r.Limit > MaxExact {
		w.Admit(instant, r)
		w.bucket(w.n - 1).count += count - 1
		w.total += count - 1
		return
	}
	for range count {
		w.Admit(instant, r)
	}
}
