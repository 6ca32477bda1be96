//go:build faults

package faults

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// underBy returns by how many a limit was missed: at a refusal, the limit minus the admissions that can lie in
// the period before it.
func underBy(admitted, refused []admission) int {
	worst := 0
	for i, r := range refused {
		if i%7 != 0 && i > 20 { // many are alike
			continue
		}
		within := 0
		for _, a := range admitted {
			if a.sent.Before(r.answered) && r.sent.Sub(a.answered) < exactPeriod {
				within++
			}
		}
		worst = max(worst, exactLimit-within)
	}
	return worst
}

// stumble freezes the nodes once in every second, each for 100 to 500 ms.
func stumble(nodes []*blackbox.Node) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() {
			for second := time.NewTicker(time.Second); ; {
				long := 100*time.Millisecond + rand.N(400*time.Millisecond)
				time.Sleep(rand.N(time.Second - long))
				n.Freeze()
				time.Sleep(long)
				n.Thaw()
				select {
				case <-second.C:
				case <-stop:
					return
				}
			}
		})
	}
	return func() {
		close(stop)
		all.Wait()
	}
}

// While every node freezes for a part of every second, a limit is never exceeded, and admits at most one
// request in a hundred too few. A client that gets no answer for a second, or a 503, tries the next node.
func TestFaultsLimitsHoldWhileNodesFreeze(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, nodes []*blackbox.Node) (end func()){
		"stopped": func(_ *testing.T, nodes []*blackbox.Node) func() { return stumble(nodes) },
		"throttled": func(t *testing.T, nodes []*blackbox.Node) func() {
			var all []*blackbox.Quota
			for _, n := range nodes {
				all = append(all, blackbox.Limit(t, 100*time.Millisecond, 500*time.Millisecond, n))
			}
			t.Log("by", all[0].How)
			return func() {
				for _, q := range all {
					q.Lift()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false", "HTTP_TRUSTED_PROXIES=127.0.0.1", "LOG_LEVEL=info")
			boss := blackbox.Admin(t, c.Site, c.Nodes[0])
			blackbox.Rule(t, c.Nodes[0], boss, "exact", "rate_limit", map[string]any{"period": exactPeriod.Milliseconds(),
				"limit": exactLimit, "targetResources": []string{"GET " + blackbox.KeysPath}})
			time.Sleep(time.Second) // by then every node has it
			road := &caravan{starved: blackbox.WatchStarved(t)}
			road.route(c.Nodes...)
			end := begin(t, c.Nodes)
			began := time.Now()
			got := exactly(t, road, 1, func(func() [exactKeys]int) {})
			end()
			admitted, over, under := 0, 0, 0
			for k := range exactKeys {
				o, u := overBy(got.admitted[k]), underBy(got.admitted[k], got.refused[k])
				admitted, over, under = admitted+len(got.admitted[k]), max(over, o), max(under, u)
				if o > 0 || u > exactLimit/100 {
					t.Errorf("key %d: %d over the limit, refused with %d fewer", k, o, u)
				}
			}
			t.Logf("%d admitted in %v, at worst %d over, refused with at most %d fewer, %d turns", admitted,
				time.Since(began).Round(time.Millisecond), over, under, got.turns)
		})
	}
}

// On a machine with half a processor for three nodes under load, every answer is correct, or is 503 with a
// Retry-After. No member is removed for being slow, and within a second after the processors are back every
// node serves as before.
func TestFaultsStarvedMachineKeepsMembers(t *testing.T) {
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false", "LOG_LEVEL=info")
	var tokens []blackbox.Headers
	for range 6 {
		tokens = append(tokens, c.Nodes[0].Auth(t, c.AddUser("user")))
	}
	quota := blackbox.Limit(t, 50*time.Millisecond, 100*time.Millisecond, c.Nodes...)
	t.Log("by", quota.How)
	var stop atomic.Bool
	var served, refused, silent atomic.Int64
	var work sync.WaitGroup
	for i := range 24 {
		work.Go(func() {
			for n := i; !stop.Load(); n++ {
				node, token := c.Nodes[n%3], tokens[i%len(tokens)]
				if n%4 == 0 {
					token = blackbox.Headers{"x-auth": "not.a.token"}
				}
				a, err := node.Try("GET", blackbox.SessionsPath, nil, token)
				switch {
				case err != nil:
					silent.Add(1)
				case a.Status == http.StatusServiceUnavailable:
					if refused.Add(1); a.Header.Get("Retry-After") == "" {
						t.Errorf("503 without Retry-After: %s", a)
					}
				case n%4 == 0 && a.Code() == "UNAUTHENTICATED", n%4 != 0 && a.Status == http.StatusOK:
					served.Add(1)
				default:
					t.Errorf("%s", a)
				}
			}
		})
	}
	time.Sleep(20 * time.Second)
	quota.Lift()
	lifted := time.Now()
	last := make([]time.Time, len(c.Nodes)) // when a node was last not itself
	for i, n := range c.Nodes {
		work.Go(func() {
			for time.Since(lifted) < 4*time.Second {
				began := time.Now()
				a, err := n.Try("GET", blackbox.SessionsPath, nil, tokens[0])
				if err != nil || a.Status != http.StatusOK || time.Since(began) > 500*time.Millisecond {
					last[i] = time.Now()
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	time.Sleep(time.Until(lifted.Add(4 * time.Second)))
	stop.Store(true)
	work.Wait()
	back := time.Duration(0)
	for _, at := range last {
		back = max(back, at.Sub(lifted))
	}
	t.Logf("%d served, %d refused, %d not answered; as before after %v", served.Load(), refused.Load(),
		silent.Load(), back)
	if back > time.Second {
		t.Errorf("not as before until %v after the processors were back", back)
	}
	if served.Load() < 200 {
		t.Errorf("only %d were served", served.Load())
	}
	for i, n := range c.Nodes {
		if moves := strings.Count(n.Log(), "cluster: members"); moves > 6 {
			t.Errorf("node %d saw %d sets of members", i, moves)
		}
	}
}
