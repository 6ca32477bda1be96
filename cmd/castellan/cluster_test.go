package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

func threeNodes(t *testing.T, settings ...string) *blackbox.Cluster {
	t.Helper()
	c := blackbox.NewSite(t, "postgres").Set(settings...).Cluster()
	for range 3 {
		c.Join()
	}
	whole(t, c)
	return c
}

// whole waits until every node sees every other one.
func whole(t *testing.T, c *blackbox.Cluster) {
	t.Helper()
	blackbox.Until(t, seconds(20), "every node sees the others", func() bool {
		for _, n := range c.Nodes {
			got := c.CommandWith([]string{"CLUSTER_ACTOR_ADDR=" + n.Actors}, "", "cluster", "status")
			if got.Code != 0 || strings.Count(got.Out, " serving ") != len(c.Nodes) {
				return false
			}
		}
		return true
	})
}

// A client reaches its challenge, its socket events and its sessions from any
// node, whichever owns them.
func TestClusterServesFromAnyNode(t *testing.T) {
	t.Parallel()
	c := threeNodes(t, "LIMITS_ENABLED=false")
	demo := c.Seeded("user")
	boss := admin(t, c.Site, c.Nodes[0])
	var seen struct {
		Data struct {
			Belongs bool
			Members []struct{ Share float64 }
		}
	}
	if c.Nodes[1].Ok(t, "GET", "/admin/cluster", nil, boss).Read(t, &seen); !seen.Data.Belongs || len(seen.Data.Members) != 3 {
		t.Errorf("%+v", seen)
	}
	for _, m := range seen.Data.Members {
		if m.Share < 0.28 || m.Share > 0.39 {
			t.Errorf("a share of %v", m.Share)
		}
	}
	c.Nodes[1].Do(t, "GET", "/admin/cluster", nil, nil).Is(t, 401, "UNAUTHENTICATED")
	twoMethods(t, c.Nodes[0], boss)
	time.Sleep(seconds(1)) // within which every node has it
	for i := range 9 {     // so many that every node owns some of the challenges
		a, b, d := c.Nodes[i%3], c.Nodes[(i+1)%3], c.Nodes[(i+2)%3]
		f := a.Login(t, demo)
		socket := d.Socket(t, f)
		sms, mail := a.Code(t, demo, "SMS"), b.Code(t, demo, "MAIL")
		b.Complete(t, f, f.Method(t, "MAIL"), blackbox.WrongFor(mail)).Is(t, 422, "OTP_INVALID")
		b.Complete(t, f, f.Method(t, "SMS"), sms).Is(t, 200, "")
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		final := d.Complete(t, f, f.Method(t, "MAIL"), mail).Is(t, 200, "")
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
		for _, n := range c.Nodes {
			sameOutcome(t, final, n.Result(t, f))
		}
		token := blackbox.Headers{"x-auth": final.Header.Get("x-auth")}
		b.Ok(t, "GET", blackbox.SessionsPath, nil, token)
		a.Ok(t, "POST", "/auth/logout", nil, token)
		a.Do(t, "GET", blackbox.SessionsPath, nil, token).Is(t, 401, "TOKEN_REVOKED")
		blackbox.Until(t, seconds(1), "the session has ended everywhere", func() bool {
			return d.Do(t, "GET", blackbox.SessionsPath, nil, token).Code() == "TOKEN_REVOKED"
		})
	}
}

// traveller is a visitor that goes on at another node when one does not answer.
type traveller struct {
	*visitor
	at    int
	turns int
}

// caravan keeps travellers going over the nodes of a cluster.
type caravan struct {
	mu     sync.Mutex
	nodes  []*blackbox.Node
	all    []*traveller
	steps  atomic.Int64
	stop   atomic.Bool
	ends   sync.WaitGroup
	broken atomic.Bool
}

func (c *caravan) pick(n int) blackbox.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[n%len(c.nodes)].Impatient(seconds(4))
}

func (c *caravan) route(nodes ...*blackbox.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = nodes
}

func (c *caravan) start(t *testing.T) {
	t.Helper()
	c.stop.Store(false)
	for _, v := range c.all {
		c.ends.Go(func() {
			for !c.stop.Load() {
				err := v.step(c.pick(v.at))
				switch {
				case err == nil:
					v.steps++
					c.steps.Add(1)
					if v.steps%5 == 0 {
						v.at++ // from time to time it goes elsewhere by itself
					}
				case errors.Is(err, errLost):
					v.at++
					v.turns++
					time.Sleep(5 * time.Millisecond)
				default:
					v.err = fmt.Errorf("after %d steps and %d turns: %w", v.steps, v.turns, err)
					c.broken.Store(true)
					return
				}
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

// Nodes join, leave, are killed and freeze while clients work. Every step that
// was acknowledged is known wherever a client asks, no step counts twice, and
// no login makes two sessions.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	c := threeNodes(t, "LIMITS_ENABLED=false", "MFA_MAX_RENEWALS=100", "MFA_CHALLENGE_ATTEMPTS=30", fmt.Sprint("MFA_METHOD_ATTEMPTS=", mayBeWrong),
		"MFA_OTP_BUDGET=100", "MFA_OTP_BUDGET_WINDOW=1s", "LOG_LEVEL=info")
	boss := admin(t, c.Site, c.Nodes[0])
	twoMethods(t, c.Nodes[0], boss)
	tune(t, c.Nodes[0], boss, "SMS", 120_000, 1)
	tune(t, c.Nodes[0], boss, "MAIL", 120_000, 1)
	time.Sleep(seconds(1)) // within which every node has them
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	road := &caravan{}
	road.route(c.Nodes...)
	for i := range 6 {
		road.all = append(road.all, &traveller{visitor: &visitor{a: c.AddUser("user"), rng: rand.New(rand.NewPCG(seed, uint64(i)))}, at: i})
	}
	before := c.Count("session")

	phase := func(name string, do func()) {
		t.Helper()
		began, steps, turns := time.Now(), road.steps.Load(), road.turned()
		road.start(t)
		road.progress(t, 30)
		do()
		road.progress(t, 60)
		road.check(t, name)
		t.Logf("%s: %d steps, %d turns, %v", name, road.steps.Load()-steps, road.turned()-turns, time.Since(began).Round(time.Millisecond))
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
	// What clients had asked of the frozen node itself would be done when it
	// goes on, whatever they do meanwhile: they ask the others, who ask it.
	n := c.Nodes[0]
	road.route(c.Nodes[1:]...)
	phase("freeze", func() {
		n.Freeze()
		time.Sleep(seconds(4))
		road.progress(t, 30)
		n.Thaw()
		road.progress(t, 60)
	})
	whole(t, c)
	road.route(c.Nodes...)
	phase("afterwards", func() {})
	phase("every node anew", func() {
		for _, old := range slices.Clone(c.Nodes) {
			c.Join()
			c.Forget(old)
			old.Stop()
			road.route(c.Nodes...)
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
}

func (c *caravan) turned() (n int) {
	for _, v := range c.all {
		n += v.turns
	}
	return n
}

// A socket that was opened before its challenge moved hears what happens
// after, at once.
func TestClusterSocketsFollow(t *testing.T) {
	t.Parallel()
	c := threeNodes(t, "LIMITS_ENABLED=false")
	a, b, d := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	type case_ struct {
		f      blackbox.Flow
		who    blackbox.Account
		code   string
		socket *blackbox.Socket
	}
	var cases []case_
	for range 9 {
		u := c.AddUser("user")
		f := a.Login(t, u)
		cases = append(cases, case_{f, u, a.Code(t, u, "SMS"), a.Socket(t, f)})
	}
	time.Sleep(200 * time.Millisecond) // everybody is subscribed
	d.Kill()
	c.Forget(d)
	for i, k := range cases {
		if i == 4 {
			b.Stop()
			c.Forget(b)
		}
		c.Nodes[i%len(c.Nodes)].Complete(t, k.f, k.f.Method(t, "SMS"), k.code).Is(t, 200, "")
		k.socket.Expect(k.f, "LOGIN", "METHOD_COMPLETE")
		k.socket.Expect(k.f, "LOGIN", "ACTION_COMPLETE")
	}
}

// The keys of a cluster are made by a command, and nothing is overwritten.
func TestClusterCommands(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, x := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"cluster", "init", first}, 0, "ca.key"},
		{[]string{"cluster", "init", first}, 1, "already"},
		{[]string{"cluster", "cert", first, second}, 0, second},
		{[]string{"cluster", "cert", first, second}, 1, "exists"},
		{[]string{"cluster", "cert", second, filepath.Join(dir, "c")}, 1, "authority"},
		{[]string{"cluster", "status"}, 1, "CASTELLAN_CLUSTER_ACTOR_ADDR"},
	} {
		got := s.Command("", x.args...)
		if got.Code != x.code || !strings.Contains(got.Out+got.ErrOut, x.say) {
			t.Errorf("%v: exit %d: %s%s", x.args, got.Code, got.Out, got.ErrOut)
		}
	}
	if _, err := os.Stat(filepath.Join(second, "ca.key")); err == nil {
		t.Error("a node got the authority's key")
	}
	// A folder without keys stops the start, with its name in the message.
	s.Set("CLUSTER_GOSSIP_ADDR=127.0.0.1:7946", "CLUSTER_ACTOR_ADDR=127.0.0.1:7947", "CLUSTER_TLS_DIR="+dir)
	if got := s.Command("", "serve"); got.Code != 1 || !strings.Contains(got.ErrOut, "cluster keys") {
		t.Errorf("a folder without keys: exit %d: %s", got.Code, got.ErrOut)
	}
}
