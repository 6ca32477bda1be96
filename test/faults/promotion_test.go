package faults

import (
	"flag"
	"net/http"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/pgtest"
)

var promotions = flag.Int("promotions", 0, "rounds of TestFaultsPromotions; 0 is 1, or 20 in make faults")

// servedWithin is the promise after the promotion of a standby.
var servedWithin = blackbox.Within(5)

// The primary of PostgreSQL is killed under load and its synchronous standby is promoted, again and again. No
// acknowledged step is lost, none happens twice, and no node is restarted. Readiness is 503 while there is no primary.
// The old primary, which comes back writable, is not used again.
func TestFaultsPromotions(t *testing.T) {
	t.Parallel()
	rounds := *promotions
	if rounds == 0 {
		rounds = 1
		if everyFault {
			rounds = 20
		}
	}
	primary := storetest.Value(pgtest.Start(pgtest.Settings("synchronous_commit=on")))(t)
	standby, err := primary.Standby(nil)
	if err != nil {
		primary.Stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		primary.Stop()
		standby.Stop()
	})
	s := blackbox.NewSiteOn(t, pgtest.Both(primary, standby))
	s.Set(forVisitors...)
	c := s.Cluster()
	nodes := []*blackbox.Node{c.Join(), c.Join(), c.Join()}
	blackbox.Whole(t, c)
	asksTwo(t, s, nodes...)
	road := newCaravan(t, s, 4, nodes...)
	who := s.AddUser("user")
	ready := func(n *blackbox.Node) int {
		return storetest.Value(n.Try("GET", "/health/ready", nil, nil))(t).Status
	}
	var slowest time.Duration
	road.start(t)
	for round := range rounds {
		road.progress(t, 20)
		primary.Kill()
		time.Sleep(1500 * time.Millisecond)
		for i, n := range nodes {
			storetest.Equal(t, ready(n), http.StatusServiceUnavailable, "round", round, "node", i, "without a primary")
		}
		storetest.Must(t, standby.Promote())
		promoted := time.Now()
		for i, n := range nodes {
			for {
				got, err := n.Try("POST", "/auth/login", blackbox.LoginBody(who), nil)
				late := time.Since(promoted) - road.starved.Since(promoted)
				if err == nil && got.Status == http.StatusOK {
					slowest = max(slowest, late)
					t.Logf("round %d: node %d serves %v after the promotion", round, i, late.Round(time.Millisecond))
					break
				}
				if err != nil || got.Status != http.StatusServiceUnavailable || late > servedWithin {
					t.Fatalf("round %d: node %d, %v after the promotion: %v %s", round, i, late, err, got)
				}
				time.Sleep(20 * time.Millisecond)
			}
			blackbox.Until(t, blackbox.Within(1), "ready while it serves", func() bool { return ready(n) == http.StatusOK })
		}
		// The old primary waits for no standby, and would take writes.
		storetest.Must(t, primary.Alone())
		road.progress(t, 40)
		primary.Stop()
		next := storetest.Value(standby.Standby(primary))(t)
		primary, standby = standby, next
	}
	road.progress(t, 40)
	road.check(t, "after the promotions")
	t.Logf("%d promotions, slowest first success %v, %d acknowledged steps, %d logins",
		rounds, slowest.Round(time.Millisecond), road.steps.Load(), road.arrive(t))
}
