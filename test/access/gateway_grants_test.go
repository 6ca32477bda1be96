package access

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Of 200 uses of a grant on three nodes, of which one is killed meanwhile, at most one succeeds, and no other use
// later. A route is in effect on every node within a second, and a repetition has the same challenge on each
// (D-EXT-11).
func TestGatewayGrantIsUsedOnceInCluster(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false")
	g := &gate{Node: c.Nodes[0], s: c.Site, owner: c.Seeded("user")}
	g.boss = blackbox.Admin(t, c.Site, g.Node)
	g.xAuth, _ = g.Session(t, g.owner)
	g.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), g.boss)
	g.route(t, payRoute)
	made := time.Now()
	on := func(n *blackbox.Node) *gate {
		of := *g
		of.Node = n
		return &of
	}
	for _, n := range c.Nodes {
		blackbox.Until(t, blackbox.Within(2), "the route is in effect", func() bool {
			return on(n).ask(t, "POST", "/orders/7/pay", blackbox.Headers{"x-auth": ""}).Status == 401
		})
	}
	t.Logf("in effect on three nodes after %v", time.Since(made))
	ids := map[string]bool{}
	for _, n := range c.Nodes {
		var again struct{ Challenge blackbox.Challenge }
		on(n).ask(t, "POST", "/orders/7/pay").Is(t, 401, "CHALLENGE_REQUIRED").Read(t, &again)
		ids[again.Challenge.ChallengeID] = true
	}
	storetest.Equal(t, len(ids), 1, "challenges of three nodes")
	for round, kill := range []bool{false, true} {
		grant := g.approve(t, g.ask(t, "POST", "/orders/7/pay"))
		var mu sync.Mutex
		var wait sync.WaitGroup
		answers := map[string]int{}
		for i := range 200 {
			n := c.Nodes[i%len(c.Nodes)]
			wait.Go(func() {
				h := blackbox.Headers{"X-Original-Method": "POST", "X-Original-URI": "/orders/7/pay", "x-auth": g.xAuth,
					"X-Original-Host": "shop.example", "x-to": "IBAN 7"}
				maps.Copy(h, granted(grant))
				a, err := n.Try("GET", checkPath, nil, h)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					answers["lost"]++
					return
				}
				answers[fmt.Sprint(a.Status, a.Code())]++
			})
			if kill && i == 100 {
				c.Nodes[2].Kill()
			}
		}
		wait.Wait()
		if answers["204"] > 1 || !kill && (answers["204"] != 1 || answers["403GRANT_USED"] != 199) {
			t.Errorf("round %d: %v", round, answers)
		}
		// A use whose answer was lost with the node is still the one use.
		used := c.Count("guard_grant WHERE used_at > 0")
		a := g.ask(t, "POST", "/orders/7/pay", granted(grant))
		if used == round+1 && a.Code() != "GRANT_USED" || answers["204"] == 1 && a.Code() != "GRANT_USED" {
			t.Errorf("round %d, afterwards: %s; %d used", round, a, used)
		}
	}
}
