package ratelimit_test

import (
	"net/netip"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
)

// The identity of a key names its label and entity, and gives the same key again.
func TestIdentityOfKey(t *testing.T) {
	for id, k := range map[string]ratelimit.Key{
		"probe-ip/9.1.0.7":           {Rule: "probe-ip", IP: netip.MustParseAddr("9.1.0.7")},
		"a%2Fb%20c/2001:db8::/64":    {Rule: "a/b c", IP: netip.MustParseAddr("2001:db8::")},
		"geo/TR":                     {Rule: "geo", Name: "TR"},
		"r/10.0.0.0/24":              {Rule: "r", Name: "10.0.0.0/24"},
		"r/2001:db8::/48":            {Rule: "r", Name: "2001:db8::/48"},
		"login/01JD8Y3M6T0000000000": {Rule: "login", Name: "01JD8Y3M6T0000000000"},
	} {
		if got, ok := ratelimit.ParseID(id); !ok || got != k || k.ID() != id {
			t.Errorf("%s: %+v %t; %+v has %s", id, got, ok, k, k.ID())
		}
	}
	for _, id := range []string{"", "r", "r/", "%zz/a"} {
		if k, ok := ratelimit.ParseID(id); ok {
			t.Errorf("%q: %+v", id, k)
		}
	}
	subscriber := ratelimit.Key{Rule: "r", IP: netip.MustParseAddr("2001:db8::")}
	for _, entity := range []string{"2001:db8::", "2001:db8::7", "2001:db8::9%eth0", "2001:db8::7/64"} {
		if got := ratelimit.KeyOf("r", entity); got != subscriber {
			t.Errorf("%s: %+v", entity, got)
		}
	}
	if got := ratelimit.KeyOf("r", "::ffff:9.1.0.7"); got.IP != netip.MustParseAddr("9.1.0.7") {
		t.Errorf("%+v", got)
	}
}

// A request counts as many admissions at once or none. Its wait ends at the instant at which it is admitted. Removed
// admissions make room again. All this holds for exact and for coarse windows.
func TestCostAndForgetUntil(t *testing.T) {
	for _, limit := range []int64{10, 10 * ratelimit.MaxExact} {
		c := new(clock)
		table, s, unit := ratelimit.NewTable(c.now), make([]ratelimit.Standing, 1), limit/10
		key := ratelimit.Key{Rule: "r", Name: "a"}
		ask := func(cost int64) bool {
			ok, err := table.Allow(t.Context(), []ratelimit.Demand{{Key: key, Limit: limit, Period: time.Minute, Cost: cost}}, s)
			return ok && err == nil
		}
		if ask(limit+1) || s[0].Retry != int64(time.Minute) {
			t.Errorf("more than the limit: %+v", s[0])
		}
		for i := range int64(4) { // at 0, 10, 20 and 30 s
			if !ask(2*unit) || s[0].Used != 2*unit*(i+1) {
				t.Errorf("%d: %+v", i, s[0])
			}
			c.ns.Add(int64(10 * time.Second))
		}
		for cost, wait := range map[int64]time.Duration{3: 20, 4: 20, 5: 30, 6: 30, 8: 40, 10: 50} {
			if ask(cost*unit) || s[0].Retry != int64(wait*time.Second) || s[0].Used != 8*unit {
				t.Errorf("cost %d: %+v, not admitted in %d s", cost, s[0], wait)
			}
		}
		c.ns.Add(int64(20*time.Second - 1))
		if ask(4 * unit) {
			t.Error("admitted early")
		}
		if c.ns.Add(1); !ask(4 * unit) {
			t.Errorf("not admitted in time: %+v", s[0])
		}
		table.WithPartition(key.Partition(), func(p *ratelimit.Partition) {
			w, now := p.Get(key), table.Instant()
			w.Add(now, int64(time.Second), unit, ratelimit.Quota{Limit: limit, Period: int64(time.Minute)})
			w.ForgetUntil(now)
			if s := w.Look(now, ratelimit.Quota{Limit: limit, Period: int64(time.Minute)}); s.Used != unit {
				t.Errorf("%+v is left", s)
			}
		})
		if !ask(9*unit) || ask(1) {
			t.Errorf("after a reset: %+v", s[0])
		}
	}
}

// A client without its own key pays the whole cost under the wider one.
func TestCostUnderASharedKey(t *testing.T) {
	l, _, _ := bounded(1)
	ask(t, l, ipKey("192.0.2.1"), 5, time.Minute)
	for i, want := range []bool{true, false} {
		s := make([]ratelimit.Standing, 1)
		d := ratelimit.Demand{Key: ipKey("192.0.2.2"), Limit: 5, Period: time.Minute, Cost: 3}
		ok, err := l.Allow(t.Context(), []ratelimit.Demand{d}, s)
		if ok != want || err != nil || s[0].Used != 3 {
			t.Errorf("request %d: %t, %v, %+v", i, ok, err, s)
		}
	}
}
