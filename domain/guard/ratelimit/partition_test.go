package ratelimit_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

// waiting is a client that waits or has gone.
type waiting bool

func (w waiting) Waits() bool { return bool(w) }

// A client waits until its context has ended or the client itself has gone; one that is unknown waits.
func TestClientOfContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"unknown": {t.Context(), true}, "waits": {ratelimit.WithClient(t.Context(), waiting(true)), true},
		"has gone":          {ratelimit.WithClient(t.Context(), waiting(false)), false},
		"the context ended": {ratelimit.WithClient(ended, waiting(true)), false}, "unknown and ended": {ended, false},
	} {
		storetest.Equal(t, ratelimit.Waits(c.ctx), c.want, name)
	}
}

// A partition holds one window for each key, and none after it was cleared. Its keys count toward the bound of a rule.
func TestPartitionOfTable(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	table := ratelimit.NewTable(func() time.Time { return now })
	one := ratelimit.Key{Rule: "r", Name: "a"}
	other := one
	for n := 0; other == one || other.Partition() != one.Partition(); n++ {
		other.Name = string(rune('b' + n))
	}
	before := table.Instant()
	now = now.Add(time.Second)
	storetest.Equal(t, table.Instant()-before, int64(time.Second), "nanoseconds of the clock")
	table.WithPartition(one.Partition(), func(p *ratelimit.Partition) {
		if p.Len() != 0 || p.Get(one) != nil {
			t.Errorf("%d windows in a new partition", p.Len())
		}
		w := p.GetOrCreate(one)
		if w == nil || p.GetOrCreate(one) != w || p.Get(one) != w || p.GetOrCreate(other) == w || p.Len() != 2 {
			t.Errorf("%d windows", p.Len())
		}
		keys := slices.Collect(p.Keys())
		if len(keys) != 2 || !slices.Contains(keys, one) || !slices.Contains(keys, other) {
			t.Errorf("%v", keys)
		}
		p.Clear()
		if p.Len() != 0 || p.Get(one) != nil {
			t.Errorf("%d windows after the end of all", p.Len())
		}
		if p.GetOrCreate(one) == nil || p.Len() != 1 {
			t.Error("a cleared partition takes no window")
		}
	})
}

// A window counts with the wider key for a period and a little longer, and then alone.
func TestSharedWindow(t *testing.T) {
	var w ratelimit.Window
	if w.SharedAt(0) {
		t.Error("a new window is shared")
	}
	w.ShareFor(1000, time.Minute)
	if !w.SharedAt(1000+int64(time.Minute)) || w.SharedAt(1000+int64(time.Hour)) {
		t.Error("shared for another time than a minute")
	}
}

// Nodes of different versions agree on the partition of a key, because its owner counts it for all of them.
func TestPartitionsStayTheSame(t *testing.T) {
	for want, k := range map[int]ratelimit.Key{
		526: {}, 46: {Rule: "login"}, 103: {Rule: "login", Name: "u1"}, 777: {Rule: "login", Name: "u2"},
		446: {Rule: "login", IP: netip.MustParseAddr("192.0.2.1")},
		913: {Rule: "login", IP: netip.MustParseAddr("2001:db8:1:2::")},
	} {
		storetest.Equal(t, k.Partition(), want, k, "partition")
	}
	used := map[int]int{}
	for n := range 64 * ratelimit.Partitions {
		used[subscriber(uint32(n)).Partition()]++
	}
	for p := range ratelimit.Partitions {
		if n := used[p]; n < 24 || n > 128 {
			t.Errorf("partition %d has %d of the keys, and 64 are its share", p, n)
		}
	}
}

// A key is removed by the first Expire at or after its deadline, also one that was moved, after any pause. It is
// visited a few times in its life, and not in every round.
func TestKeysExpireByDeadline(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var m ratelimit.KeyMap[int64]
		now, next, added, visits, rounds := int64(0), 0, 0, 0, 0
		deadlines := map[ratelimit.Key]int64{}
		after := func() int64 { return now + r.Int64N(int64(1)<<(20+r.IntN(30))) } // up to 13 days
		for range 2000 {
			for range r.IntN(4) {
				k, at := ratelimit.Key{Rule: "r", Name: strconv.Itoa(next)}, after()
				next, added = next+1, added+1
				deadlines[k] = at
				*m.Add(k, at) = at
			}
			if r.IntN(3) == 0 {
				for k := range deadlines { // it is used again: the wheel learns that later
					deadlines[k] = max(deadlines[k], after())
					*m.Get(k) = deadlines[k]
					break
				}
			}
			now += r.Int64N(int64(1) << (25 + r.IntN(18))) // up to 2.4 hours
			rounds += m.Len()
			for more := true; more; {
				n := 0
				more = m.Expire(now, 3, func(k ratelimit.Key, v *int64) int64 {
					n++
					return *v
				})
				if visits += n; n > 3 {
					t.Fatalf("%d visits in one step", n)
				}
			}
			for k, at := range deadlines {
				if (m.Get(k) != nil) != (at > now) {
					t.Fatalf("seed %d at %v: %s with deadline %v is kept: %t", seed, time.Duration(now), k.Name,
						time.Duration(at), m.Get(k) != nil)
				}
				if at <= now {
					delete(deadlines, k)
				}
			}
			if m.Len() != len(deadlines) {
				t.Fatalf("%d keys, want %d", m.Len(), len(deadlines))
			}
		}
		if added == 0 || visits > 8*added || visits > rounds/4 {
			t.Errorf("seed %d: %d visits of %d keys; all keys in all rounds: %d", seed, visits, added, rounds)
		}
	}
}

// Keys with the same hash are separate, in any order of additions and removals, and cost no more than others: a list
// of so many keys would take minutes.
func TestKeysWithTheSameHash(t *testing.T) {
	const keys = 1 << 18
	var m ratelimit.KeyMap[uint64]
	prints := map[uint64]bool{}
	for n := range uint64(keys) {
		k := ratelimit.Colliding(n)
		if m.Get(k) != nil || k.Hash() != ratelimit.Colliding(0).Hash() {
			t.Fatalf("key %d: %v, hash %x", n, m.Get(k), k.Hash())
		}
		*m.Add(k, int64(n%3)<<40) = n
		prints[k.Fingerprint()] = true
	}
	seen := 0
	for range m.Keys() {
		seen++
	}
	if m.Len() != keys || seen != keys || len(prints) != keys {
		t.Errorf("%d keys, %d listed, %d fingerprints", m.Len(), seen, len(prints))
	}
	for round := range int64(3) {
		next := func(_ ratelimit.Key, n *uint64) int64 { return int64(*n%3) << 40 }
		for m.Expire(round<<40, 1000, next) {
		}
		for n := range uint64(keys) {
			if v := m.Get(ratelimit.Colliding(n)); (v != nil) != (int64(n%3) > round) || v != nil && *v != n {
				t.Fatalf("round %d: key %d is %v", round, n, v)
			}
		}
	}
	*m.Add(ratelimit.Colliding(1), 0) = 1
	if v := m.Get(ratelimit.Colliding(1)); v == nil || *v != 1 || m.Len() != 1 {
		t.Errorf("%v, %d keys", v, m.Len())
	}
}

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
		storetest.Equal(t, ratelimit.KeyOf("r", entity), subscriber, entity)
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
