package ratelimit_test

import (
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
)

// A full large limit admits again when its admissions leave the window, as a small one does.
func TestLargeLimitNamesItsRetry(t *testing.T) {
	for _, limit := range []int64{ratelimit.MaxExact, ratelimit.MaxExact + 1} {
		r := ratelimit.Quota{Limit: limit, Period: int64(time.Hour)}
		const first = int64(1_700_000_000_000_000_000)
		var w ratelimit.Window
		for range limit {
			w.Admit(first, r)
		}
		left := r.Period * 3 / 4
		if got := w.Look(first+r.Period-left, r); got.Used != limit || got.Retry != left || got.Reset != left {
			t.Errorf("limit %d: %+v, want %d", limit, got, left)
		}
	}
}
