package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// What a client of a cluster does: it turns to another node after a refused or
// reset connection, after 503, and after this long a silence; and it gives up when
// no node has served it for so long.
const (
	impatience = time.Second
	givesUp    = 10 * time.Second
)

// traveller is a visitor that goes on at another node when one does not answer.
type traveller struct {
	*visitor
	at    int
	turns int
	worst time.Duration // between a step that was not served and the next that was
}

// caravan keeps travellers going over the nodes of a cluster.
type caravan struct {
	starved *blackbox.Starved
	mu      sync.Mutex
	nodes   []*blackbox.Node
	all     []*traveller
	steps   atomic.Int64
	stop    atomic.Bool
	ends    sync.WaitGroup
	broken  atomic.Bool
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
			var since time.Time // when what is being tried was tried first
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
						v.at++ // from time to time it goes elsewhere by itself
					}
					continue
				case errors.Is(err, errLost):
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

// check stops the travellers and holds the cluster to what it promised them.
func (c *caravan) check(t *testing.T, when string) {
	t.Helper()
	c.stop.Store(true)
	c.ends.Wait()
	time.Sleep(time.Second) // within which every node knows of every logout
	for i, v := range c.all {
		if v.err == nil {
			for end := time.Now().Add(seconds(20)); time.Now().Before(end); i++ { // who gets no answer asks another one
				if v.err = v.check(c.pick(i), 30); !errors.Is(v.err, errLost) {
					break
				}
			}
		}
		if v.err != nil {
			t.Fatalf("%s: traveller %d after %d visits: %v", when, i, len(v.past), v.err)
		}
	}
}

// progress waits for steps that somebody acknowledged.
func (c *caravan) progress(t *testing.T, steps int64) {
	t.Helper()
	from := c.steps.Load()
	blackbox.Until(t, seconds(40), "travellers go on", func() bool { return c.steps.Load() >= from+steps || c.broken.Load() })
}

func (c *caravan) turned() (n int, worst time.Duration) {
	for _, v := range c.all {
		n += v.turns
		worst, v.worst = max(worst, v.worst), 0
	}
	return n, worst
}

// Nodes join, leave, are killed and freeze while clients work. Every step that
// was acknowledged is known wherever a client asks, no step counts twice, no login
// makes two sessions, nobody is left without a node that serves him, and no two
// activations of one identity act at one time.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	storm(t, 3, 6)
}

func storm(t *testing.T, nodes, travellers int) {
	c := blackbox.NewSite(t, "postgres").Set("LIMITS_ENABLED=false", "MFA_MAX_RENEWALS=100", "MFA_CHALLENGE_ATTEMPTS=30",
		fmt.Sprint("MFA_METHOD_ATTEMPTS=", mayBeWrong), "MFA_OTP_BUDGET=100", "MFA_OTP_BUDGET_WINDOW=1s", "LOG_LEVEL=debug").Cluster()
	for range nodes {
		c.Join()
	}
	whole(t, c)
	boss := admin(t, c.Site, c.Nodes[0])
	twoMethods(t, c.Nodes[0], boss)
	tune(t, c.Nodes[0], boss, "SMS", 120_000, 1)
	tune(t, c.Nodes[0], boss, "MAIL", 120_000, 1)
	time.Sleep(seconds(1)) // within which every node has them
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	road := &caravan{starved: blackbox.WatchStarved(t)}
	road.route(c.Nodes...)
	for i := range travellers {
		road.all = append(road.all, &traveller{visitor: &visitor{a: c.AddUser("user"), rng: rand.New(rand.NewPCG(seed, uint64(i)))}, at: i})
	}
	before := c.Count("session")

	phase := func(name string, do func()) {
		t.Helper()
		began, steps := time.Now(), road.steps.Load()
		turns, _ := road.turned()
		road.start(t)
		road.progress(t, 30)
		do()
		road.progress(t, 60)
		road.check(t, name)
		all, worst := road.turned()
		t.Logf("%s: %d steps, %d turns, at worst %v without a node, %v, of which this process was starved for %v", name, road.steps.Load()-steps, all-turns,
			worst.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), road.starved.Since(began).Round(time.Millisecond))
	}
	phase("join", func() {
		c.Join()
		road.route(c.Nodes...)
	})
	phase("leave", func() {
		n := c.Nodes[0]
		c.Forget(n)
		n.Stop() // while clients still turn to it
		road.route(c.Nodes...)
	})
	phase("kill", func() {
		n := c.Nodes[1]
		c.Forget(n)
		n.Kill()
		road.progress(t, 30)
		road.route(c.Nodes...)
	})
	c.Join()
	road.route(c.Nodes...)
	phase("freeze", func() { // clients turn to the frozen node as to any other
		n := c.Nodes[0]
		n.Freeze()
		time.Sleep(seconds(6))
		n.Thaw()
		road.progress(t, 60)
	})
	whole(t, c)
	phase("afterwards", func() {})
	phase("every node anew", func() {
		for _, old := range slices.Clone(c.Nodes) {
			c.Join()
			c.Forget(old)
			road.route(c.Nodes...)
			old.Stop()
		}
	})

	visits := 0
	for i, v := range road.all {
		if err := v.finish(road.pick(i)); err != nil {
			t.Fatalf("traveller %d: %v", i, err)
		}
	}
	time.Sleep(seconds(1))
	for i, v := range road.all {
		if err := v.check(road.pick(i+1), len(v.past)); err != nil {
			t.Fatalf("traveller %d: %v", i, err)
		}
		visits += len(v.past)
	}
	if got := c.Count("session") - before; got != visits {
		t.Errorf("%d sessions of %d logins", got, visits)
	}
	if visits < 10 {
		t.Errorf("only %d logins: too few to mean anything", visits)
	}
	if got := c.Command("", "audit", "verify"); got.Code != 0 {
		t.Errorf("the audit: exit %d: %s", got.Code, got.ErrOut)
	}
	lives := blackbox.Activations(c.Ever)
	if len(lives) < visits {
		t.Errorf("%d activations were seen of %d logins: too few to mean anything", len(lives), visits)
	}
	for _, two := range blackbox.TwoAtOnce(lives) {
		t.Errorf("two live activations of %s", two)
	}
	t.Logf("%d logins, %d steps, %d activations", visits, road.steps.Load(), len(lives))
}
