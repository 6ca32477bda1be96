package faults

import (
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/pgtest"
)

// The promises of the service during a database outage.
var (
	refusedWithin = blackbox.Within(2)
	backWithin    = blackbox.Within(3)
)

// outage is a deployment, with the ways in which its database fails and returns.
type outage struct {
	begin func()
	end   func()
}

// During a database outage every request that needs it is refused with 503 and Retry-After within two seconds.
// Within three seconds after its return all requests are served again, and no acknowledged change is lost.
func TestDatabaseOutageRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		for _, network := range []blackbox.Network{blackbox.Resets, blackbox.Stalls, blackbox.Loses} {
			if !everyFault && (nodes == 1) != (network == blackbox.Loses) {
				continue
			}
			t.Run(fmt.Sprint(nodes, " nodes, a network that ", network), func(t *testing.T) {
				s := blackbox.NewSite(t, "postgres")
				proxy := s.Behind()
				survive(t, s, nodes, outage{begin: func() { proxy.Become(network) }, end: func() { proxy.Become(blackbox.Good) }})
			})
		}
	}
}

// The same promises hold with a server that is stopped, killed or frozen.
func TestDatabaseServerStopRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		for _, how := range []string{"killed", "frozen"} {
			if !everyFault && (nodes == 1) != (how == "killed") {
				continue
			}
			t.Run(fmt.Sprint(nodes, " nodes, a server that is ", how), func(t *testing.T) {
				server := storetest.Value(pgtest.Start())(t)
				t.Cleanup(server.Stop)
				s := blackbox.NewSite(t, "postgres")
				s.DSN = server.DSN()
				s.Set("DATABASE_URL=" + s.DSN)
				o := outage{begin: server.Kill, end: func() {
					storetest.Must(t, server.Restart())
				}}
				if how == "frozen" {
					o = outage{begin: server.Freeze, end: server.Thaw}
				}
				survive(t, s, nodes, o)
			})
		}
	}
}

func survive(t *testing.T, s *blackbox.Site, count int, o outage) {
	s.Set(forVisitors...)
	var nodes []*blackbox.Node
	if count == 1 {
		nodes = append(nodes, s.Start())
	} else {
		c := s.Cluster()
		for range count {
			nodes = append(nodes, c.Join())
		}
		blackbox.Whole(t, c)
	}
	boss := asksTwo(t, s, nodes...)
	who := s.AddUser("user")
	f := nodes[0].Login(t, who)
	road := newCaravan(t, s, 4, nodes...)
	starved := road.starved
	sms := f.Method(t, "SMS")
	questions := []struct {
		name, method, path string
		body               any
		headers            blackbox.Headers
	}{
		{"a login", "POST", "/auth/login", blackbox.LoginBody(who), nil},
		{"a wrong code", "POST", blackbox.CompletePath, blackbox.CompleteBody(sms, "000000"),
			blackbox.Headers{"p-auth": f.PAuth}},
		{"a result", "GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": f.PAuth}},
		{"a session's read", "GET", blackbox.SessionsPath, nil, boss},
		{"a session's write", "DELETE", "/auth/sessions?sessionId=01ARZ3NDEKTSV4RRFFQ69G5FAV", nil, boss},
		{"an administrator's read", "GET", "/admin/audit", nil, boss},
		{"readiness", "GET", "/health/ready", nil, nil},
	}
	road.start(t)
	road.progress(t, 20)

	var asked sync.WaitGroup
	out := make(chan struct{})
	o.begin()
	began := time.Now()
	var mu sync.Mutex
	worst, refused := map[string]time.Duration{}, map[string]int{}
	for n, node := range nodes {
		for _, q := range questions {
			for range 2 {
				asked.Go(func() {
					for {
						select {
						case <-out:
							return
						default:
						}
						at := time.Now()
						got, err := node.Try(q.method, q.path, q.body, q.headers)
						took := time.Since(at) - starved.Since(at)
						mu.Lock()
						switch {
						case err != nil:
							t.Errorf("%s at node %d, %v into the outage: %v", q.name, n, time.Since(began), err)
						case got.Status == http.StatusServiceUnavailable:
							refused[q.name]++
							if got.Header.Get("Retry-After") == "" || got.Code() == "" && q.name != "readiness" {
								t.Errorf("%s at node %d: %v %s", q.name, n, got.Header, got)
							}
						case at.Sub(began) > 1500*time.Millisecond && got.Status >= 500:
							t.Errorf("%s at node %d, %v into the outage: %s", q.name, n, at.Sub(began), got)
						}
						worst[q.name] = max(worst[q.name], took)
						if took > refusedWithin {
							t.Errorf("%s at node %d, asked %v into the outage: %v", q.name, n,
								at.Sub(began).Round(time.Millisecond), took.Round(time.Millisecond))
						}
						mu.Unlock()
						time.Sleep(20 * time.Millisecond)
					}
				})
			}
		}
	}
	time.Sleep(5 * time.Second)
	close(out)
	asked.Wait()
	for _, q := range questions {
		if refused[q.name] == 0 && q.path != blackbox.ResultPath { // the owner may have the result in memory
			t.Errorf("%s was never refused", q.name)
		}
	}
	o.end()
	back := time.Now()
	for n, node := range nodes {
		for _, q := range questions {
			var got blackbox.Answer
			for {
				var err error
				got, err = node.Try(q.method, q.path, q.body, q.headers)
				if err == nil && got.Status < 500 {
					break
				}
				if time.Since(back)-starved.Since(back) > backWithin {
					t.Errorf("%s at node %d, %v after the return: %s, %v", q.name, n, time.Since(back), got, err)
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	t.Logf("back after %v; starved for %v; refused %v; slowest %v", time.Since(back).Round(time.Millisecond),
		starved.Since(began).Round(time.Millisecond), refused, worst)
	road.progress(t, 40)
	road.check(t, "after the outage")
	road.arrive(t)
}

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
			n.Awaits(t, blackbox.Within(1), 200, "GET", "/health/ready", nil, nil)
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
