package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The behaviour of a cluster's client. It tries another node after a refused or reset connection, after 503,
// and after this long a silence. It gives up if no node has served it for so long.
const (
	impatience = time.Second
	givesUp    = 10 * time.Second * blackbox.Slack
)

// traveller is a visitor that continues on another node if one does not answer.
type traveller struct {
	*visitor
	at    int
	turns int
	worst time.Duration // between a step that was not served and the next served one
}

// caravan keeps travellers moving over the nodes of a site.
type caravan struct {
	site    *blackbox.Site
	before  int // sessions
	starved *blackbox.Starved
	mu      sync.Mutex
	nodes   []*blackbox.Node
	all     []*traveller
	steps   atomic.Int64
	stop    atomic.Bool
	ends    sync.WaitGroup
	broken  atomic.Bool
}

// forVisitors are the settings of a site whose visitors take many wrong steps.
var forVisitors = []string{"LIMITS_ENABLED=false", "MFA_MAX_RENEWALS=100",
	fmt.Sprint("MFA_CHALLENGE_ATTEMPTS=", challengeTries), fmt.Sprint("MFA_METHOD_ATTEMPTS=", mayBeWrong),
	"MFA_OTP_BUDGET=100", "MFA_OTP_BUDGET_WINDOW=1s", "LOG_LEVEL=info"}

// asksTwo makes every login of a site require two methods, whose codes can be renewed at once.
func asksTwo(t *testing.T, s *blackbox.Site, nodes ...*blackbox.Node) (boss blackbox.Headers) {
	t.Helper()
	boss = blackbox.Admin(t, s, nodes[0])
	blackbox.Tune(t, nodes[0], boss, "SMS", 120_000, 1)
	blackbox.Tune(t, nodes[0], boss, "MAIL", 120_000, 1)
	blackbox.TwoMethods(t, nodes[0], boss, nodes[1:]...)
	return boss
}

// newCaravan makes travellers, who have not started yet.
func newCaravan(t *testing.T, s *blackbox.Site, travellers int, nodes ...*blackbox.Node) *caravan {
	t.Helper()
	c := &caravan{site: s, starved: blackbox.WatchStarved(t)}
	c.route(nodes...)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range travellers {
		v := &visitor{a: s.AddUser("user"), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		c.all = append(c.all, &traveller{visitor: v, at: i})
	}
	c.before = s.Count("session")
	return c
}

// arrive completes every visit of the stopped travellers. Each login has one session.
func (c *caravan) arrive(t *testing.T) (logins int) {
	t.Helper()
	for i, v := range c.all {
		if err := v.finish(c.pick(i)); err != nil {
			t.Fatalf("traveller %d: %v", i, err)
		}
		logins += len(v.past)
	}
	storetest.Equal(t, c.site.Count("session")-c.before, logins, "sessions")
	c.site.Succeeds("", "audit", "verify")
	return logins
}

func (c *caravan) pick(n int) blackbox.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[n%len(c.nodes)].Impatient(impatience, c.starved.Since)
}

func (c *caravan) route(nodes ...*blackbox.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = slices.Clone(nodes)
}

func (c *caravan) start(t *testing.T) {
	t.Helper()
	c.stop.Store(false)
	for _, v := range c.all {
		c.ends.Go(func() {
			var since time.Time // when the current step was first tried
			for !c.stop.Load() {
				began := time.Now()
				err := v.step(c.pick(v.at))
				switch {
				case err == nil:
					v.steps++
					c.steps.Add(1)
					if !since.IsZero() {
						v.worst = max(v.worst, time.Since(since))
						since = time.Time{}
					}
					if v.steps%5 == 0 {
						v.at++ // from time to time it changes the node by itself
					}
					continue
				case errors.Is(err, blackbox.ErrLost):
					v.at++
					v.turns++
					if since.IsZero() {
						since = began
					}
					if tried := time.Since(since); tried < givesUp+c.starved.Since(since) {
						time.Sleep(5 * time.Millisecond)
						continue
					}
					err = fmt.Errorf("no node served it for %v", time.Since(since))
				}
				v.err = fmt.Errorf("after %d steps and %d turns: %w", v.steps, v.turns, err)
				c.broken.Store(true)
				return
			}
		})
	}
}

// check stops the travellers and verifies the cluster's promises to them.
func (c *caravan) check(t *testing.T, when string) {
	t.Helper()
	c.stop.Store(true)
	c.ends.Wait()
	time.Sleep(time.Second) // by then every node knows of every logout
	for i, v := range c.all {
		if v.err == nil {
			for end := time.Now().Add(blackbox.Within(20)); time.Now().Before(end); i++ { // tries another node after an error
				if v.err = v.check(c.pick(i), 30); !errors.Is(v.err, blackbox.ErrLost) {
					break
				}
			}
		}
		if v.err != nil {
			t.Fatalf("%s: traveller after %d visits: %v\n%s", when, len(v.past), v.err, strings.Join(v.trail, "\n"))
		}
	}
}

// progress waits for acknowledged steps.
func (c *caravan) progress(t *testing.T, steps int64) {
	t.Helper()
	from := c.steps.Load()
	blackbox.Until(t, blackbox.Within(40), "travellers go on",
		func() bool { return c.steps.Load() >= from+steps || c.broken.Load() })
}

func (c *caravan) turned() (n int, worst time.Duration) {
	for _, v := range c.all {
		n += v.turns
		worst, v.worst = max(worst, v.worst), 0
	}
	return n, worst
}

// Nodes join, leave, are killed and freeze while clients work. Every node knows every acknowledged step. No
// step counts twice and no login makes two sessions. Every client finds a node that serves it, and two
// activations of one identity never act at the same time.
func TestClusterKeepsAcknowledgedSteps(t *testing.T) {
	t.Parallel()
	everything(t, 3, 6)
}

// storm is a cluster with travellers on it.
type storm struct {
	*blackbox.Cluster
	*caravan
}

// newStorm makes a cluster of the nodes that join starts.
func newStorm(t *testing.T, c *blackbox.Cluster, nodes, travellers int, join func()) *storm {
	t.Helper()
	c.Set(forVisitors...).Set("LOG_LEVEL=debug")
	for range nodes {
		join()
	}
	blackbox.Whole(t, c)
	asksTwo(t, c.Site, c.Nodes...)
	return &storm{c, newCaravan(t, c.Site, travellers, c.Nodes...)}
}

// phase runs do while the travellers work.
func (s *storm) phase(t *testing.T, name string, do func()) {
	t.Helper()
	began, steps := time.Now(), s.steps.Load()
	turns, _ := s.turned()
	s.start(t)
	s.progress(t, 30)
	do()
	s.progress(t, 60)
	s.check(t, name)
	all, worst := s.turned()
	t.Logf("%s: %d steps, %d turns, at worst %v without a node, %v, of which this process was starved for %v",
		name, s.steps.Load()-steps, all-turns,
		worst.Round(time.Millisecond), time.Since(began).Round(time.Millisecond),
		s.starved.Since(began).Round(time.Millisecond))
}

// finish completes every visit and counts the results of all.
func (s *storm) finish(t *testing.T) {
	t.Helper()
	logins := s.arrive(t)
	time.Sleep(time.Second)
	for i, v := range s.all {
		if err := v.check(s.pick(i+1), len(v.past)); err != nil {
			t.Fatalf("traveller %d: %v", i, err)
		}
	}
	if logins < 10 {
		t.Errorf("only %d logins: too few to mean anything", logins)
	}
	lives := blackbox.Activations(s.Ever)
	if len(lives) < logins {
		t.Errorf("%d activations were seen of %d logins: too few to mean anything", len(lives), logins)
	}
	for _, two := range blackbox.TwoAtOnce(lives) {
		t.Errorf("two live activations of %s", two)
	}
	t.Logf("%d logins, %d steps, %d activations", logins, s.steps.Load(), len(lives))
}

// everything runs every fault of a process.
func everything(t *testing.T, nodes, travellers int) {
	c := blackbox.NewSite(t, "postgres").Cluster()
	s := newStorm(t, c, nodes, travellers, func() { c.Join() })
	s.phase(t, "join", func() {
		c.Join()
		s.route(c.Nodes...)
	})
	if everyFault { // otherwise the replaced nodes leave
		s.phase(t, "leave", func() {
			n := c.Nodes[0]
			c.Forget(n)
			n.Stop() // while clients still use it
			s.route(c.Nodes...)
		})
	}
	s.phase(t, "kill", func() {
		n := c.Nodes[1]
		c.Forget(n)
		n.Kill()
		s.progress(t, 30)
		s.route(c.Nodes...)
	})
	c.Join()
	s.route(c.Nodes...)
	s.phase(t, "freeze", func() { // clients use the frozen node like any other
		n := c.Nodes[0]
		n.Freeze()
		time.Sleep(6 * time.Second)
		n.Thaw()
		s.progress(t, 60)
	})
	blackbox.Whole(t, c)
	s.phase(t, "replace every node", func() {
		for _, old := range slices.Clone(c.Nodes) {
			c.Join()
			c.Forget(old)
			s.route(c.Nodes...)
			old.Stop()
		}
	})
	s.finish(t)
}

// A session, or a key with its tokens, that ended while a node was frozen is refused by that node from its
// first answer on. The same holds for requests that arrived during the freeze. The other nodes refuse it
// within a second.
func TestClusterFrozenNodeRefusesEndedSession(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false")
	frozen, other, third := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	starved := blackbox.WatchStarved(t)
	for _, ends := range []struct {
		name string
		code string
		do   func(token blackbox.Headers)
	}{
		{"a session", "TOKEN_REVOKED", func(token blackbox.Headers) { other.Ok(t, "POST", "/auth/logout", nil, token) }},
		{"a key", "UNAUTHENTICATED", func(blackbox.Headers) {
			for range 2 {
				c.Succeeds("", "keys", "rotate", "--force")
			}
		}},
	} {
		for _, long := range []time.Duration{1500 * time.Millisecond, 6 * time.Second, 12 * time.Second} {
			if long > 10*time.Second && !everyFault {
				continue
			}
			token := other.Auth(t, c.AddUser("user"))
			for _, n := range c.Nodes { // every node has cached the token as valid
				n.Ok(t, "GET", blackbox.SessionsPath, nil, token)
			}
			frozen.Freeze()
			began := time.Now()
			ends.do(token)
			ended := time.Now()
			var all sync.WaitGroup
			for range 20 { // some on open connections, some on new ones
				all.Go(func() {
					got, err := frozen.Try("GET", blackbox.SessionsPath, nil, token)
					if err == nil && got.Status == 200 {
						t.Errorf("%s ended during a freeze of %v, and the frozen node answers %s", ends.name, long, got)
					}
				})
			}
			blackbox.Until(t, blackbox.Within(1.5), "the others know", func() bool {
				got := third.Do(t, "GET", blackbox.SessionsPath, nil, token)
				if took := time.Since(ended); got.Status == 200 && took > blackbox.Within(1)+starved.Since(ended) {
					t.Fatalf("%s ended %v ago", ends.name, took)
				}
				return got.Code() == ends.code
			})
			time.Sleep(long - min(long, time.Since(began)))
			frozen.Thaw()
			all.Wait()
			blackbox.Until(t, blackbox.Within(5), "it says so", func() bool {
				got := frozen.Do(t, "GET", blackbox.SessionsPath, nil, token)
				if got.Status == 200 {
					t.Fatalf("%s ended during a freeze of %v: %s", ends.name, long, got)
				}
				return got.Code() == ends.code
			})
		}
	}
}
