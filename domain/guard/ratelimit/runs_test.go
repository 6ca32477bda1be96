package ratelimit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

// A forgotten admission does not count, and the others count as before.
func TestForget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rule := range []ratelimit.Quota{{Limit: 5, Period: 1000}, {Limit: 50, Period: 1000}} {
		var w ratelimit.Window
		var o oracle
		now := int64(0)
		for range 20_000 {
			now += r.Int64N(40)
			if got, want := w.Look(now, rule), o.judge(now, rule); got != want {
				t.Fatalf("at %d: %+v, not %+v", now, got, want)
			} else if got.Retry == 0 {
				w.Admit(now, rule)
				o.admitted = append(o.admitted, now)
			}
			if n := len(o.admitted); r.IntN(4) == 0 && n > 0 {
				i := n - 1 - r.IntN(min(n, 3))
				if at := o.admitted[i]; at > now-rule.Period {
					if !w.Forget(at) {
						t.Fatalf("at %d nothing is known of %d", now, at)
					}
					o.admitted = append(o.admitted[:i], o.admitted[i+1:]...)
				}
			}
			if w.Forget(now + 1) {
				t.Fatal("forgot what was not")
			}
		}
	}
}

// A window built from another's runs gives the same answers; a coarse one never admits more.
func TestRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rule := range []ratelimit.Quota{{Limit: 7, Period: 1000}, {Limit: ratelimit.MaxExact, Period: 50_000},
		{Limit: 20_000, Period: 100_000}} {
		var w ratelimit.Window
		now := int64(0)
		for range 30_000 {
			if now += r.Int64N(9); w.Look(now, rule).Retry == 0 {
				w.Admit(now, rule)
			}
			if r.IntN(1000) == 0 {
				w.ForgetNewest()
			}
		}
		var copied ratelimit.Window
		w.Runs(func(instant, count int64) { copied.Add(now, instant-now, count, rule) })
		for range 50 {
			got, want := copied.Look(now, rule), w.Look(now, rule)
			if w.Coarse() && got.Used >= want.Used && got.Used-want.Used <= rule.Limit/100 && got.Retry >= want.Retry {
				now += rule.Period / 40
				continue
			}
			if got != want {
				t.Fatalf("limit %d at %d: %+v, not %+v", rule.Limit, now, got, want)
			}
			now += rule.Period / 40
		}
		if !copied.Idle(now) || w.Period() != rule.Period || w.Coarse() != (rule.Limit > ratelimit.MaxExact) {
			t.Errorf("limit %d: it is not idle, or not what it was", rule.Limit)
		}
	}
}

// An admission added ahead counts at once, and for a period from its instant.
func TestAddAhead(t *testing.T) {
	for _, rule := range []ratelimit.Quota{{Limit: 10, Period: 1000}, {Limit: 5000, Period: 1000}} {
		var w ratelimit.Window
		w.Admit(0, rule)
		storetest.Equal(t, w.Add(10, 50, 4, rule), 60, "booked as of")
		w.Admit(20, rule) // counts at 60, too: no admission precedes the last one
		for at, used := range map[int64]int64{20: 6, 999: 6, 1000: 5, 1059: 5, 1060: 0} {
			probe := w
			storetest.Equal(t, probe.Look(at, rule).Used, used, "limit", rule.Limit, "count at", at)
		}
	}
}

// Adding nothing changes nothing. The latest admission can be forgotten until none is left.
func TestNothingIsAdded(t *testing.T) {
	for _, rule := range []ratelimit.Quota{{Limit: 10, Period: 1000}, {Limit: 5000, Period: 1000}} {
		var w ratelimit.Window
		if w.ForgetNewest() || w.Forget(0) {
			t.Error("an empty window forgets")
		}
		for _, n := range []int64{0, -1} {
			if at := w.Add(10, 50, n, rule); at != 60 || w.Look(10, rule).Used != 0 {
				t.Errorf("%d added at %d: %+v", n, at, w.Look(10, rule))
			}
		}
		w.Admit(20, rule)
		w.Add(20, 40, 2, rule)
		storetest.Equal(t, w.Add(30, 10, 0, rule), 60, "at", "before the last one")
		for left := int64(2); left >= 0; left-- {
			if !w.ForgetNewest() || w.Look(60, rule).Used != left {
				t.Errorf("limit %d: %+v, want %d", rule.Limit, w.Look(60, rule), left)
			}
		}
	}
}

// Two nodes may have admitted more than the limit together. All of it counts until it leaves the window.
func TestAddBeyondTheLimit(t *testing.T) {
	rule := ratelimit.Quota{Limit: 3, Period: 100}
	var w ratelimit.Window
	for at := range int64(20) {
		w.Add(at, 0, 1, rule)
	}
	storetest.Same(t, w.Look(20, rule), ratelimit.Standing{Used: 20, Reset: 80, Retry: 97})
	storetest.Same(t, w.Look(117, rule), ratelimit.Standing{Used: 2, Reset: 1})
}

// The text of a key is that of its name, its address or its subscriber.
func TestTextOfKeys(t *testing.T) {
	for want, k := range map[string]ratelimit.Key{"u1": {Rule: "r", Name: "u1"}, "192.0.2.1": ipKey("192.0.2.1"),
		"2001:db8:1:2::/64": ipKey("2001:db8:1:2::")} {
		storetest.Equal(t, k.String(), want)
	}
}

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
