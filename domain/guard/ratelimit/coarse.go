package ratelimit

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
