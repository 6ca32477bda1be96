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

// A limit above 4096 counts in buckets of a 2048th of its period. An admission leaves with the last one of its bucket.
func TestBucketsOfLargeLimits(t *testing.T) {
	const grain, first = int64(1000), int64(1_700_000_000_000_000_000)
	r := ratelimit.Quota{Limit: 4097, Period: 2048 * grain}
	for apart, want := range map[int64]int64{grain - 1: 2, grain: 1} { // what is left as the first one leaves
		var w ratelimit.Window
		w.Admit(first, r)
		w.Admit(first+apart, r)
		if got := w.Look(first+r.Period, r); got.Used != want || got.Reset != apart {
			t.Errorf("%d ns apart: %+v, want %d", apart, got, want)
		}
		if got := w.Look(first+r.Period+apart, r); got.Used != 0 {
			t.Errorf("%d ns apart, later: %+v", apart, got)
		}
	}
	exact := ratelimit.Quota{Limit: 4096, Period: 2048 * grain} // one by one
	var w ratelimit.Window
	w.Admit(first, exact)
	w.Admit(first+1, exact)
	if got := w.Look(first+exact.Period, exact); got.Used != 1 || got.Reset != 1 {
		t.Errorf("%+v", got)
	}
}
