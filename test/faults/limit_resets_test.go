//go:build faults

package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
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
	made := c.Nodes[0].Ok(t, "POST", "/admin/service-keys", `{"name":"shop","role":"admin"}`, boss)
	shop := blackbox.Headers{"service-auth": made.At(t, "data", "key")}
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

// limiting is a cluster whose nodes also serve their metrics and Envoy's rate limit service.
type limiting struct {
	*blackbox.Cluster
	t       *testing.T
	metrics map[*blackbox.Node]string
	envoys  map[*blackbox.Node]*grpc.ClientConn
}

func newLimiting(t *testing.T, c *blackbox.Cluster, nodes int) *limiting {
	t.Helper()
	l := &limiting{c, t, map[*blackbox.Node]string{}, map[*blackbox.Node]*grpc.ClientConn{}}
	for range nodes {
		l.Join()
	}
	return l
}

func (l *limiting) Join() *blackbox.Node {
	t, keys := l.t, filepath.Join(filepath.Dir(l.Dir), "cluster")
	t.Helper()
	metrics, rls := porttest.Free(t), porttest.Free(t)
	n := l.Cluster.Join("METRICS_ADDR="+metrics, "LIMITS_RLS_ADDR="+rls,
		"LIMITS_RLS_CERT_FILE="+filepath.Join(keys, "node.crt"), "LIMITS_RLS_KEY_FILE="+filepath.Join(keys, "node.key"))
	l.metrics[n] = metrics
	conn := storetest.Value(grpc.NewClient(rls, grpc.WithDefaultCallOptions(grpc.ForceCodec(written{})),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))))(t)
	t.Cleanup(func() { conn.Close() })
	l.envoys[n] = conn
	return n
}

// shared counts the decisions of running nodes by their share of a limit, which may admit more than its number.
func (l *limiting) shared(t *testing.T) (sum float64) {
	t.Helper()
	for _, n := range l.Nodes {
		sum += blackbox.Value(blackbox.Scrape(t, l.metrics[n]), "castellan_ratelimit_shared_total")
	}
	return sum
}

// written is a codec for messages that are written already.
type written struct{}

func (written) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (written) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }
func (written) Name() string                    { return "proto" }
func text(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// askAsEnvoy counts an entity under the limit orders of the service shop, as Envoy does.
func (l *limiting) askAsEnvoy(n *blackbox.Node, key, entity string) (allowed bool, err error) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), "service-auth", key),
		time.Minute)
	defer cancel()
	descriptor := text(nil, 1, text(text(nil, 1, []byte("orders")), 2, []byte(entity)))
	var answer []byte
	err = l.envoys[n].Invoke(ctx, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		text(text(nil, 1, []byte("shop")), 2, descriptor), &answer)
	return len(answer) > 1 && answer[0] == 1<<3 && answer[1] == 1, err
}
