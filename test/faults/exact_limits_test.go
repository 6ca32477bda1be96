//go:build faults

package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A limit of the firewall, and how many keys are counted under it.
const (
	exactLimit  = 200
	exactPeriod = time.Minute
	exactKeys   = 40
	exactAskers = 16
)

// admission is one request that was admitted, at some time between its two instants.
type admission struct{ sent, answered time.Time }

// answers counts the answers to the clients by key.
type answers struct {
	mu       sync.Mutex
	admitted [exactKeys][]admission
	limited  [exactKeys]int
	refused  [exactKeys][]admission // when each refusal was sent and answered
	underway [exactKeys]int
	turns    int
	took     []time.Duration // of the answers that decided
}

// row is a row of the table in docs/measured.md.
func (a *answers) row() string {
	var admitted []int
	for _, of := range a.admitted {
		admitted = append(admitted, len(of))
	}
	slices.Sort(admitted)
	slices.Sort(a.took)
	at := func(percent int) time.Duration {
		return a.took[(len(a.took)-1)*percent/100].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("admitted per key %d %d %d; %d answers, p50 %v, p99 %v, max %v; %d turns", admitted[0],
		admitted[len(admitted)/2], admitted[len(admitted)-1], len(a.took), at(50), at(99), at(100), a.turns)
}

// overBy returns how far the admissions of a key exceed the limit in their busiest period. Only admissions
// that certainly lie within it count.
func overBy(all []admission) int {
	slices.SortFunc(all, func(a, b admission) int { return a.answered.Compare(b.answered) })
	worst := 0
	for i := range all {
		// The admissions that were answered by then and sent less than a period before.
		within := 0
		for _, a := range all[:i+1] {
			if all[i].answered.Sub(a.sent) < exactPeriod {
				within++
			}
		}
		worst = max(worst, within-exactLimit)
	}
	return worst
}

// A limit of N admits exactly N while nodes join, leave, freeze and are all replaced. When an owner is killed,
// it admits at most the requests in flight beyond N. A request that a node decides by its share of the limit, because
// owner and replica are silent, may be admitted beyond N, and is counted (D-WAF-13).
func TestFaultsLimitsHoldWhileNodesChange(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			c := newLimiting(t, blackbox.NewSite(t, "postgres").
				Set("LIMITS_ENABLED=false", "HTTP_TRUSTED_PROXIES=127.0.0.1", "LOG_LEVEL=info").Cluster(), nodes)
			blackbox.Whole(t, c.Cluster)
			boss := blackbox.Admin(t, c.Site, c.Nodes[0])
			blackbox.Rule(t, c.Nodes[0], boss, "exact", "rate_limit", map[string]any{"period": exactPeriod.Milliseconds(),
				"limit": exactLimit, "targetResources": []string{"GET " + blackbox.KeysPath}})
			time.Sleep(time.Second) // by then every node has it
			starved := blackbox.WatchStarved(t)
			phases := 0
			phase := func(name string, do func(road *caravan)) {
				t.Helper()
				phases++
				began, decided := time.Now(), c.shared(t)
				road := &caravan{starved: starved}
				road.route(c.Nodes...)
				var before [exactKeys]int
				got := exactly(t, road, phases, func(underway func() [exactKeys]int) {
					if name == "kill" {
						before = underway()
					}
					do(road)
				})
				over, shared := 0, int(c.shared(t)-decided)
				for k := range exactKeys {
					over += max(0, overBy(got.admitted[k])-before[k])
					if n := len(got.admitted[k]); n < exactLimit*8/10 {
						t.Errorf("%s: key %d: only %d admitted", name, k, n)
					}
				}
				t.Logf("%s: %s; %d over, %d decided by shares; %v", name, got.row(), over, shared,
					time.Since(began).Round(time.Second))
				if over > max(0, shared) {
					t.Errorf("%s: %d over the limit", name, over)
				}
			}
			phase("none", func(*caravan) {})
			phase("join", func(road *caravan) {
				c.Join()
				road.route(c.Nodes...)
			})
			phase("leave", func(road *caravan) {
				n := c.Nodes[0]
				c.Forget(n)
				n.Stop()
				road.route(c.Nodes...)
			})
			for _, long := range []time.Duration{2 * time.Second, 6 * time.Second} {
				phase(fmt.Sprint("freeze for ", long), func(*caravan) {
					c.Nodes[0].Freeze()
					time.Sleep(long)
					c.Nodes[0].Thaw()
				})
				blackbox.Whole(t, c.Cluster)
			}
			phase("replace every node", func(road *caravan) {
				for _, old := range slices.Clone(c.Nodes) {
					c.Join()
					c.Forget(old)
					road.route(c.Nodes...)
					old.Stop()
				}
			})
			phase("kill", func(road *caravan) {
				n := c.Nodes[1]
				c.Forget(n)
				n.Kill()
				road.route(c.Nodes...)
			})
			limitsOfService(t, c, boss)
		})
	}
}

// ask counts an order by POST /limit, or as Envoy does. An error says that the request was not decided.
func ask(c *limiting, n *blackbox.Node, key, order string, asEnvoy bool) (allowed bool, err error) {
	if asEnvoy {
		return c.askAsEnvoy(n, key, order)
	}
	a, err := n.Try("POST", "/limit", fmt.Sprintf(`{"rule":"orders","entity":%q}`, order),
		blackbox.Headers{"service-auth": key})
	if err == nil && a.Status != http.StatusOK {
		err = errors.New(a.String())
	}
	return strings.Contains(string(a.Body), `"allowed":true`), err
}

// reason is the kind of an error of ask.
func reason(err error) string {
	if st, ok := status.FromError(err); ok {
		return st.Code().String()
	}
	return err.Error()[:min(len(err.Error()), 60)]
}

// orders are the entities that a service counts.
const orders = 10

// callers sends 200 callers of a service to nodes; every second one asks as Envoy does. do runs when a third of the
// limit is used up, and after it each order is refused to each of them. It returns how many were admitted by order, and
// by node.
func callers(t *testing.T, c *limiting, nodes []*blackbox.Node, key string,
	do func()) (admitted [orders]int, by map[*blackbox.Node]int) {
	t.Helper()
	var mu sync.Mutex
	var done atomic.Bool
	var all sync.WaitGroup
	by = map[*blackbox.Node]int{}
	undecided := map[string]int{}
	sum := 0
	deadline := time.Now().Add(blackbox.Within(90))
	for i := range 200 {
		all.Go(func() {
			for at, left := i, orders; left > 0 && time.Now().Before(deadline); at++ {
				order, n := at%orders, nodes[(at+i/orders)%len(nodes)]
				allowed, err := ask(c, n, key, fmt.Sprint("order ", order), i%2 == 0)
				if err != nil {
					mu.Lock()
					undecided[reason(err)]++
					mu.Unlock()
					time.Sleep(20 * time.Millisecond)
					continue
				}
				if !allowed && done.Load() {
					left--
				}
				if allowed {
					mu.Lock()
					admitted[order]++
					by[n]++
					sum++
					mu.Unlock()
				}
			}
		})
	}
	blackbox.Until(t, blackbox.Within(60), "a third of the limit used up", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return sum > orders*exactLimit/3
	})
	do()
	done.Store(true)
	all.Wait()
	t.Logf("undecided: %v", undecided)
	return admitted, by
}

// A service gets exactly its limit while a node is killed (D-WAF-21). After a reset it gets exactly its limit again, on
// every node, also if a node that keeps counters is killed 10 ms after the answer (D-WAF-20).
func limitsOfService(t *testing.T, c *limiting, boss blackbox.Headers) {
	n := c.Nodes[0]
	key := n.Ok(t, "POST", "/admin/service-keys", `{"name":"shop","role":"admin"}`, boss).At(t, "data", "key")
	blackbox.Rule(t, n, boss, "orders", "rate_limit", map[string]any{"period": (10 * time.Minute).Milliseconds(),
		"limit": exactLimit, "appId": "shop", "targetEntityType": "USER_ID", "targetResources": []string{"LIMIT orders"}})
	kill := func() {
		last := c.Nodes[len(c.Nodes)-1]
		c.Forget(last)
		last.Kill()
	}
	whole := func() []*blackbox.Node {
		c.Join()
		blackbox.Whole(t, c.Cluster)
		time.Sleep(time.Second) // by then every node has the rule and the key, and partitions have their replicas
		return slices.Clone(c.Nodes[:len(c.Nodes)-1])
	}
	check := func(when string, admitted [orders]int, by map[*blackbox.Node]int, nodes int) {
		t.Helper()
		for i, n := range admitted {
			storetest.Equal(t, n, exactLimit, when, "order", i, "admitted")
		}
		if len(by) != nodes {
			t.Errorf("%s: %d of %d nodes admitted", when, len(by), nodes)
		}
	}
	nodes := whole()
	admitted, by := callers(t, c, nodes, key, kill)
	check("a kill", admitted, by, len(nodes))
	nodes = whole()
	var all sync.WaitGroup
	for i := range orders {
		all.Go(func() {
			body := fmt.Sprintf(`{"label":"orders","entity":"order %d","reason":"a test"}`, i)
			n.Ok(t, "POST", "/admin/system/waf/counters/reset", body, boss)
		})
	}
	all.Wait()
	time.Sleep(10 * time.Millisecond)
	kill()
	admitted, by = callers(t, c, nodes, key, func() {})
	check("a reset and a kill", admitted, by, len(nodes))
}

// exactly sends requests with fresh keys to all nodes while do runs, and until every key was refused often
// afterwards.
func exactly(t *testing.T, road *caravan, phase int, do func(underway func() [exactKeys]int)) *answers {
	t.Helper()
	got := &answers{}
	var next atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for range exactAskers {
		all.Go(func() {
			for !stop.Load() {
				n := int(next.Add(1))
				k := n % exactKeys
				headers := blackbox.Headers{"X-Forwarded-For": fmt.Sprintf("198.51.%d.%d", 100+phase, k+1)}
				first := time.Now()
				for at := n / exactKeys; ; at++ {
					got.mu.Lock()
					got.underway[k]++
					got.mu.Unlock()
					sent := time.Now()
					a, err := road.pick(at).Try("GET", blackbox.KeysPath, nil, headers)
					answered := time.Now()
					got.mu.Lock()
					got.underway[k]--
					if err == nil {
						got.took = append(got.took, answered.Sub(sent))
					}
					switch {
					case err != nil:
						got.turns++
					case a.Status == http.StatusOK:
						got.admitted[k] = append(got.admitted[k], admission{sent, answered})
					case a.Status == http.StatusTooManyRequests:
						got.limited[k]++
						got.refused[k] = append(got.refused[k], admission{sent, answered})
					default:
						t.Errorf("key %d: %s", k, a)
					}
					got.mu.Unlock()
					if err == nil {
						break
					}
					time.Sleep(5 * time.Millisecond)
					if time.Since(first) > givesUp+road.starved.Since(first) {
						t.Errorf("no node served key %d for %v: %v", k, time.Since(first), err)
						break
					}
				}
			}
		})
	}
	count := func() (admitted int) {
		got.mu.Lock()
		defer got.mu.Unlock()
		for k := range exactKeys {
			admitted += len(got.admitted[k])
		}
		return admitted
	}
	blackbox.Until(t, blackbox.Within(60), "a third of the limit used up",
		func() bool { return count() > exactKeys*exactLimit/3 })
	do(func() [exactKeys]int {
		got.mu.Lock()
		defer got.mu.Unlock()
		return got.underway
	})
	got.mu.Lock()
	before := got.limited
	got.mu.Unlock()
	blackbox.Until(t, blackbox.Within(60), "every key was refused", func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		for k := range exactKeys {
			if got.limited[k] < before[k]+20 {
				return false
			}
		}
		return true
	})
	stop.Store(true)
	all.Wait()
	return got
}
