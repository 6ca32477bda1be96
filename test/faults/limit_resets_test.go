//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

const (
	resetLimit = 40
	resetKeys  = 24
)

// A reset is in effect once it is acknowledged, and can be repeated after a 503, while the owner or the replica of its
// counter is killed (D-WAF-20). Afterwards exactly the limit is admitted.
func TestFaultsResetsHoldWhileTheirNodesAreKilled(t *testing.T) {
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false")
	boss := blackbox.Admin(t, c.Site, c.Nodes[0])
	var key struct{ Data struct{ Key string } }
	c.Nodes[0].Ok(t, "POST", "/admin/service-keys", `{"name":"shop","role":"admin"}`, boss).Read(t, &key)
	shop := blackbox.Headers{"service-auth": key.Data.Key}
	blackbox.Rule(t, c.Nodes[0], boss, "resets", "rate_limit", map[string]any{"period": time.Hour.Milliseconds(),
		"limit": resetLimit, "appId": "shop", "targetEntityType": "USER_ID", "targetResources": []string{"LIMIT resets"}})
	for round, role := range []string{"owner", "replica", "owner", "replica"} {
		blackbox.Whole(t, c)
		time.Sleep(time.Second) // by then every node has the rule and the key, and the partitions have their replicas
		name := func(i int) string { return fmt.Sprintf("%d-%d", round, i) }
		for i := range resetKeys {
			fill := fmt.Sprintf(`{"rule":"resets","entity":%q,"cost":%d}`, name(i), resetLimit)
			c.Nodes[0].Ok(t, "POST", "/limit", fill, shop)
		}
		victim, its := victimOf(t, c, boss, role, name(0))
		c.Forget(victim)
		var killed sync.Once
		var mu sync.Mutex
		var all sync.WaitGroup
		repeated := 0
		for i, entity := range its {
			all.Go(func() {
				body := fmt.Sprintf(`{"label":"resets","entity":%q,"reason":"a test"}`, entity)
				again := reset(t, c.Nodes[i%len(c.Nodes)], body, boss, func() { killed.Do(victim.Kill) })
				mu.Lock()
				defer mu.Unlock()
				repeated += again
			})
		}
		all.Wait()
		for _, entity := range its {
			all.Go(func() {
				storetest.Equal(t, admittedOf(t, c.Nodes, entity, shop), resetLimit, "admitted after a reset of", entity, "round",
					round, role)
			})
		}
		all.Wait()
		t.Logf("round %d: %s of %d counters killed, %d resets repeated", round, role, len(its), repeated)
		c.Join()
	}
}

// victimOf returns the node that has a role for the counter of an entity, and all entities of its round for which it
// has the role.
func victimOf(t *testing.T, c *blackbox.Cluster, boss blackbox.Headers, role,
	entity string) (victim *blackbox.Node, its []string) {
	t.Helper()
	var list struct {
		Items  []struct{ Entity, Node, Replica string }
		Silent []string
	}
	round, _, _ := strings.Cut(entity, "-")
	blackbox.Until(t, blackbox.Within(20), "each counter has a replica", func() bool {
		its = nil
		list.Items, list.Silent = nil, nil
		c.Nodes[0].Ok(t, "GET", "/admin/system/waf/counters?label=resets&least=1&limit=500", nil, boss).Read(t, &list)
		nodes, of := map[string]string{}, ""
		for _, x := range list.Items {
			if x.Replica == "" {
				return false
			}
			if nodes[x.Entity] = x.Node; role == "replica" {
				nodes[x.Entity] = x.Replica
			}
		}
		for e, id := range nodes {
			if of = nodes[entity]; id == of && strings.HasPrefix(e, round+"-") {
				its = append(its, e)
			}
		}
		for _, n := range c.Nodes {
			if of != "" && strings.HasPrefix(of, n.Actors) {
				victim = n
			}
		}
		return len(list.Silent) == 0 && victim != nil && len(its) > 1
	})
	return victim, its
}

// reset sends a reset until it is acknowledged, and returns how often it was repeated. kill is called after the first
// answer.
func reset(t *testing.T, n *blackbox.Node, body string, boss blackbox.Headers, kill func()) (again int) {
	t.Helper()
	for end := time.Now().Add(blackbox.Within(30)); time.Now().Before(end); again++ {
		a, err := n.Try("POST", "/admin/system/waf/counters/reset", body, boss)
		kill()
		switch {
		case err == nil && a.Status == http.StatusOK:
			return again
		case err == nil && a.Status == http.StatusNotFound && again > 0: // the reset before was in effect
			return again
		case err == nil && a.Status != http.StatusServiceUnavailable:
			t.Errorf("%s: %s", body, a)
			return again
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s: never acknowledged", body)
	return again
}

// admittedOf counts the admitted requests of an entity until every node refuses it. A refusal from a cache of before
// the reset ends within a second.
func admittedOf(t *testing.T, nodes []*blackbox.Node, entity string, shop blackbox.Headers) (admitted int) {
	t.Helper()
	body := fmt.Sprintf(`{"rule":"resets","entity":%q}`, entity)
	refused := map[*blackbox.Node]bool{}
	end := time.Now().Add(blackbox.Within(60))
	for cached := time.Now().Add(1500 * time.Millisecond); len(refused) < len(nodes) && time.Now().Before(end); {
		for _, n := range nodes {
			a, err := n.Try("POST", "/limit", body, shop)
			if err != nil || a.Status == http.StatusServiceUnavailable {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			switch {
			case a.Status != http.StatusOK:
				t.Errorf("%s: %s", entity, a)
				return admitted
			case strings.Contains(string(a.Body), `"allowed":true`):
				admitted++
				clear(refused)
			case time.Now().After(cached):
				refused[n] = true
			default:
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	if len(refused) < len(nodes) {
		t.Errorf("%s: not refused by every node", entity)
	}
	return admitted
}
