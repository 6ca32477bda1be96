package ratelimit_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

var decisions = flag.Int("decisions", 300_000,
	"how many decisions are compared with the oracle; 10000000 in a long run")

// oracle remembers every admission for ever and counts them one by one.
type oracle struct{ admitted []int64 }

// judge is the definition: fewer than limit in (now − period, now].
func (o *oracle) judge(now int64, r ratelimit.Quota) (s ratelimit.Standing) {
	var counted []int64
	for i := len(o.admitted) - 1; i >= 0 && o.admitted[i] > now-r.Period; i-- {
		counted = append(counted, o.admitted[i])
	}
	if s.Used = int64(len(counted)); s.Used == 0 {
		return s
	}
	s.Reset = counted[len(counted)-1] + r.Period - now
	if s.Used >= r.Limit {
		s.Retry = counted[r.Limit-1] + r.Period - now
	}
	return s
}

// The table of D-WAF-10: a fixed window, a token bucket, and a window that counts refusals each fail a row.
func TestTable(t *testing.T) {
	var w ratelimit.Window
	r := ratelimit.Quota{Limit: 3, Period: 2000}
	for _, row := range []struct {
		at    int64
		admit bool
		retry int64
	}{{0, true, 0}, {500, true, 0}, {1000, true, 0}, {1500, false, 500}, {2001, true, 0}, {2100, false, 400},
		{2501, true, 0}} {
		s := w.Look(row.at, r)
		if (s.Retry == 0) != row.admit || s.Retry != row.retry {
			t.Errorf("at %d: %+v", row.at, s)
		}
		if row.admit {
			w.Admit(row.at, r)
		}
	}
}

// The window is half-open: an admission counts until just before its age is the period.
func TestBoundary(t *testing.T) {
	r := ratelimit.Quota{Limit: 1, Period: 1000}
	for at, want := range map[int64]int64{5: 1000, 6: 999, 1004: 1, 1005: 0, 1006: 0} {
		var w ratelimit.Window
		w.Admit(5, r)
		if s := w.Look(at, r); s.Retry != want || (s.Used == 1) != (want > 0) || s.Reset != want {
			t.Errorf("at %d: %+v, want retry %d", at, s, want)
		}
		storetest.Equal(t, w.Idle(at), (want == 0), "idle at", at)
	}
}

// TestExact compares with the oracle under many rules. Histories are short enough for the oracle to recount.
func TestExact(t *testing.T) {
	const perRun = 200
	rnd := rand.New(rand.NewPCG(1, 2))
	for range *decisions / perRun {
		var w ratelimit.Window
		var o oracle
		r := ratelimit.Quota{Limit: 1 + rnd.Int64N(12), Period: 1 + rnd.Int64N(100)}
		now := rnd.Int64N(1000) - 500
		for i := range perRun {
			now += rnd.Int64N(1 + 3*r.Period/r.Limit)
			got, want := w.Look(now, r), o.judge(now, r)
			if got != want {
				t.Fatalf("decision %d of %+v at %d: %+v, the oracle says %+v", i, r, now, got, want)
			}
			if got.Retry == 0 {
				w.Admit(now, r)
				o.admitted = append(o.admitted, now)
			} else if w.Look(now+got.Retry-1, r).Retry != 1 || w.Look(now+got.Retry, r).Retry != 0 {
				t.Fatalf("%+v at %d: Retry %d is not exact", r, now, got.Retry)
			}
		}
	}
}

// A changed rule applies to the remembered admissions, even when the limit crosses from exact instants to buckets and
// back.
func TestChangedRule(t *testing.T) {
	var w ratelimit.Window
	for at := range int64(5) {
		w.Admit(at*100, ratelimit.Quota{Limit: 5, Period: 1000})
	}
	for _, c := range []struct {
		r    ratelimit.Quota
		want ratelimit.Standing
	}{
		{ratelimit.Quota{Limit: 5, Period: 1000}, ratelimit.Standing{Used: 5, Reset: 600, Retry: 600}},
		{ratelimit.Quota{Limit: 2, Period: 1000}, ratelimit.Standing{Used: 5, Reset: 600, Retry: 900}},
		{ratelimit.Quota{Limit: 9, Period: 1000}, ratelimit.Standing{Used: 5, Reset: 600}},
		{ratelimit.Quota{Limit: 5, Period: 250}, ratelimit.Standing{Used: 3, Reset: 50}},
		{ratelimit.Quota{Limit: 5, Period: 5000}, ratelimit.Standing{Used: 5, Reset: 4600, Retry: 4600}},
		{ratelimit.Quota{Limit: ratelimit.MaxExact + 1, Period: 5000}, ratelimit.Standing{Used: 5, Reset: 4600}},
		{ratelimit.Quota{Limit: 3, Period: 5000}, ratelimit.Standing{Used: 5, Reset: 4600, Retry: 4800}},
	} {
		storetest.Equal(t, w.Look(400, c.r), c.want, c.r)
	}
}

// From many admissions in buckets to a small limit, the newest instants remain.
func TestFromManyToFew(t *testing.T) {
	var w ratelimit.Window
	many := ratelimit.Quota{Limit: 3 * ratelimit.MaxExact, Period: 1 << 40}
	for at := range int64(2*ratelimit.MaxExact + 7) {
		w.Admit(at<<30, many)
	}
	few := ratelimit.Quota{Limit: ratelimit.MaxExact, Period: 1 << 62}
	if s := w.Look((2*ratelimit.MaxExact+6)<<30, few); s.Used != ratelimit.MaxExact || s.Retry == 0 {
		t.Errorf("%+v", s)
	}
}

// Above MaxExact a window never admits more than limit in any period. A period longer by one grain would refuse all
// its refusals, too.
func TestCoarse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	const period = int64(1_000_000)
	const grain = period / 2048
	for _, limit := range []int64{ratelimit.MaxExact + 1, 5000, 20_000} {
		var w ratelimit.Window
		var times []int64
		r := ratelimit.Quota{Limit: limit, Period: period}
		now, start, wide, refused := int64(0), 0, 0, 0
		for range 8 * limit {
			now += rnd.Int64N(2 * period / limit / 2)
			if rnd.IntN(5000) == 0 {
				now += rnd.Int64N(period)
			}
			for start < len(times) && times[start] <= now-period {
				start++
			}
			for wide < len(times) && times[wide] <= now-period-grain {
				wide++
			}
			s := w.Look(now, r)
			exact := int64(len(times) - start)
			switch {
			case s.Used < exact || s.Used > int64(len(times)-wide):
				t.Fatalf("limit %d at %d: used %d, the oracle counts %d to %d", limit, now, s.Used, exact, len(times)-wide)
			case s.Retry == 0 && exact >= limit:
				t.Fatalf("limit %d at %d: admitted beside %d", limit, now, exact)
			case s.Retry == 0:
				w.Admit(now, r)
				times = append(times, now)
			default:
				refused++
			}
		}
		if refused == 0 {
			t.Errorf("limit %d was never reached", limit)
		}
		// The bound of the memory limits the remembered admissions, not the limit of the rule.
		if n := w.Slots(); n > 4*2048 {
			t.Errorf("limit %d: %d buckets", limit, n)
		}
	}
}

// TestClockSteppedBack: time does not run backwards, so nothing is admitted twice.
func TestClockSteppedBack(t *testing.T) {
	var w ratelimit.Window
	r := ratelimit.Quota{Limit: 2, Period: 100}
	w.Admit(1000, r)
	w.Admit(500, r)
	if s := w.Look(700, r); s.Used != 2 || s.Retry != 100 {
		t.Errorf("%+v", s)
	}
	if s := w.Look(1100, r); s.Used != 0 || s.Retry != 0 {
		t.Errorf("%+v", s)
	}
}

// A window is as large as its use: eight bytes per counting admission, and at most twice that.
func TestMemory(t *testing.T) {
	var w ratelimit.Window
	r := ratelimit.Quota{Limit: ratelimit.MaxExact, Period: int64(time.Second)}
	for i := range int64(100_000) { // ten count at a time
		w.Admit(i*int64(time.Second)/10, r)
	}
	if n := w.Slots(); n > 32 {
		t.Errorf("%d slots for ten admissions", n)
	}
	for i := range int64(100_000) {
		w.Admit(20_000*int64(time.Second)+i, r)
	}
	storetest.Equal(t, w.Slots(), ratelimit.MaxExact, "slots for a full window")
}
