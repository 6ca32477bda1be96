package ratelimit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit"
	"castellan/cluster"
	domain "castellan/domain/guard/ratelimit"
)

// turn sends a message to a key through the library's Cluster of a node.
func turn(t *testing.T, n *cluster.Node, key domain.Key, m proto.Message) *pb.RateTurned {
	t.Helper()
	got, err := n.Cluster().Request(key.ID(), ratelimit.KeyKind, m)
	if err != nil {
		t.Fatalf("%T of %s: %v", m, key.ID(), err)
	}
	return got.(*pb.RateTurned)
}

// A key is a virtual actor: every node reads it, counts under it and resets it, and the limiter of the firewall counts
// in the same window. A reset is in effect on every node within a second, and the limit holds afterwards, also if the
// owner is lost at once.
func TestKeysAreVirtualActors(t *testing.T) {
	const limit, period = 10, 10 * time.Minute
	a, seed := join(t)
	b, _ := join(t, seed)
	c, _ := join(t, seed)
	nodes := []member{a, b, c}
	settled(t, nodes...)
	allow := func(m member, k domain.Key) (ok bool) {
		stands := make([]domain.Standing, 1)
		for range 100 { // a client repeats a request that could not be counted
			var err error
			ok, err = m.Allow(t.Context(), []domain.Demand{{Key: k, Limit: limit, Period: period}}, stands)
			if err == nil {
				return ok
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error("no decision")
		return false
	}
	decide := func(m member, k domain.Key, cost int64, name uint64) *pb.RateTurned {
		return turn(t, m.node, k, &pb.RateDecide{Limit: limit, PeriodMs: period.Milliseconds(), Cost: cost, Name: name})
	}
	owners := map[string]domain.Key{}
	for i := 0; len(owners) < 3; i++ {
		k := domain.Key{Rule: "any/thing", Name: fmt.Sprint("user", i)}
		if owner, _ := a.node.Place(ratelimit.Kind, fmt.Sprint(k.Partition())); owners[owner].Name == "" {
			owners[owner] = k
		}
	}
	for owner, k := range owners {
		for i, m := range nodes {
			if at := turn(t, m.node, k, &pb.RatePeek{}); at.Used != int64(3*i) || at.Owner != owner || at.Phase != "owning" ||
				at.Replica == "" || at.Replica == owner {
				t.Errorf("peek by node %d: %v", i, at)
			}
			if r := decide(m, k, 2, uint64(i+1)); !r.Admitted || r.Used != int64(3*i+2) || r.Owner != owner {
				t.Errorf("decide by node %d: %v", i, r)
			}
			if r := decide(nodes[(i+1)%3], k, 2, uint64(i+1)); !r.Admitted || r.Used != int64(3*i+2) {
				t.Errorf("the same request by another node: %v", r)
			}
			if !allow(m, k) {
				t.Errorf("the limiter of node %d refuses", i)
			}
		}
		if r := decide(a, k, 2, 0); r.Admitted || r.Used != 9 || r.RetryMs <= 0 || r.RetryMs > period.Milliseconds() {
			t.Errorf("two of one: %v", r)
		}
		if r := decide(b, k, 1, 0); !r.Admitted || r.Used != limit {
			t.Errorf("the last one: %v", r)
		}
		for i, m := range nodes {
			if allow(m, k) || decide(m, k, 1, 0).Admitted {
				t.Errorf("node %d: over the limit", i)
			}
		}
		if r := turn(t, c.node, k, &pb.RatePeek{Limit: limit, PeriodMs: period.Milliseconds()}); r.RetryMs <= 0 ||
			r.Used != limit {
			t.Errorf("peek at the limit: %v", r)
		}
	}
	if r := decide(a, owners[a.node.Address()], 1001, 0); r.Admitted || r.Owner != "" {
		t.Errorf("a cost over the largest: %v", r)
	}
	counters := &ratelimit.Counters{Node: b.node, Kind: b.Hosted()}
	query := domain.CountersQuery{Least: 0.8, Most: 2, Rules: []domain.CountersRule{
		{Label: "other", Limit: 1, Period: period}, {Label: "any/thing", Limit: limit, Period: period}}}
	all, silent := counters.Fullest(t.Context(), query)
	if len(all) != 2 || len(silent) != 0 {
		t.Errorf("%+v, %q are silent", all, silent)
	}
	for _, x := range all {
		if k := owners[x.Node]; x.Label != k.Rule || x.Entity != k.Name || x.Used != limit || x.Limit != limit ||
			x.Retry <= 0 || x.Period != period || x.Replica == "" || x.Phase != "owning" {
			t.Errorf("%+v", x)
		}
	}
	// Several keys are one decision, also of a request that costs more.
	costed := ratelimit.Costed{Limiter: a.Limiter, Node: a.node}
	wide, narrow := domain.Key{Rule: "cost", Name: "wide"}, domain.Key{Rule: "cost", Name: "narrow"}
	for _, x := range []struct {
		cost int64
		want bool
	}{{4, false}, {3, true}, {2, false}} {
		before, stands := turn(t, b.node, wide, &pb.RatePeek{}).Used, make([]domain.Standing, 2)
		ok, err := costed.Allow(t.Context(), []domain.Demand{{Key: wide, Limit: 100, Period: period, Cost: x.cost},
			{Key: narrow, Limit: 3, Period: period, Cost: x.cost}}, stands)
		if ok != x.want || err != nil || (stands[1].Retry > 0) == x.want {
			t.Errorf("cost %d: %t, %v, %+v", x.cost, ok, err, stands)
		}
		want := before
		if x.want {
			want += x.cost
		}
		for end := time.Now().Add(10 * time.Second); turn(t, b.node, wide, &pb.RatePeek{}).Used != want; {
			if time.Sleep(10 * time.Millisecond); time.Now().After(end) {
				t.Fatalf("cost %d: %v, want %d used", x.cost, turn(t, b.node, wide, &pb.RatePeek{}), want)
			}
		}
	}
	began := time.Now()
	for _, k := range owners {
		if r := turn(t, b.node, k, &pb.RateReset{}); r.Used != limit || !r.Admitted {
			t.Errorf("reset: %v", r)
		}
		if r := turn(t, c.node, k, &pb.RateReset{}); r.Used != 0 {
			t.Errorf("a second reset: %v", r)
		}
	}
	c.node.Stop(context.Background()) // it owned one, and was the replica of others
	c.Close()
	admitted := map[string]int{}
	whole := func() bool {
		for owner := range owners {
			if admitted[owner] < limit {
				return false
			}
		}
		return true
	}
	for time.Since(began) < 1500*time.Millisecond || !whole() && time.Since(began) < 30*time.Second { // a slow machine
		for owner, k := range owners {
			for _, m := range nodes[:2] {
				if allow(m, k) {
					admitted[owner]++
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	for owner := range owners {
		if admitted[owner] != limit {
			t.Errorf("after the reset %s admitted %d of %d", owner, admitted[owner], limit)
		}
	}
}

// Places that a node has reserved and may still use stay counted after a reset. When it may not, nothing stays.
func TestResetKeepsReservedPlaces(t *testing.T) {
	a, seed := join(t)
	b, _ := join(t, seed)
	settled(t, a, b)
	const limit, period = 5000, 10 * time.Minute
	k := domain.Key{Rule: "r", Name: "busy"}
	d := []domain.Demand{{Key: k, Limit: limit, Period: period}}
	admitted := 0
	for range 20 {
		for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
			for _, m := range []member{a, b} {
				if ok, err := m.Allow(t.Context(), d, make([]domain.Standing, 1)); err == nil && ok {
					admitted++
				}
			}
		}
		if a.Stats().Reserved+b.Stats().Reserved == 0 {
			continue
		}
		before := turn(t, a.node, k, &pb.RateReset{}).Used
		after := turn(t, b.node, k, &pb.RatePeek{}).Used
		if after == 0 || after > before { // more places were reserved in between
			continue
		}
		for end := time.Now().Add(10 * time.Second); turn(t, b.node, k, &pb.RatePeek{}).Used > 0; {
			if time.Sleep(20 * time.Millisecond); time.Now().After(end) {
				t.Fatal("reserved places stay for ever")
			}
			turn(t, a.node, k, &pb.RateReset{})
		}
		return
	}
	t.Errorf("no reserved place was kept; %d admitted, %+v", admitted, a.Stats())
}
