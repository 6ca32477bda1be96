package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// clusterState is the state of a cluster, as a node shows it to administrators.
type clusterState struct {
	Node    string
	Belongs bool
	Members []struct {
		Version, Address string
		Share            float64
		SilentMs         int
		Limits           *struct{ Owned, Replica, Unsettled int }
	}
	Activations       map[string]int
	Moved, HandedOver *int
	Lapses            int
	Pauses            []struct {
		Member   string
		LastedMs int
	}
}

func stateAt(t *testing.T, n *blackbox.Node, boss blackbox.Headers) clusterState {
	t.Helper()
	var a struct{ Data clusterState }
	n.Ok(t, "GET", "/admin/cluster", nil, boss).Read(t, &a)
	return a.Data
}

// A client reaches its challenge, its socket events and its sessions from any node, whichever node owns them.
func TestClusterServesFromAnyNode(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false")
	demo := c.Seeded("user")
	boss := blackbox.Admin(t, c.Site, c.Nodes[0])
	seen := stateAt(t, c.Nodes[1], boss)
	if !seen.Belongs || len(seen.Members) != 3 {
		t.Errorf("%+v", seen)
	}
	for _, m := range seen.Members {
		if m.Share < 0.28 || m.Share > 0.39 {
			t.Errorf("a share of %v", m.Share)
		}
	}
	c.Nodes[1].Do(t, "GET", "/admin/cluster", nil, nil).Is(t, 401, "UNAUTHENTICATED")
	blackbox.TwoMethods(t, c.Nodes[0], boss, c.Nodes[1:]...)
	for i := range 9 { // so many that every node owns some of the challenges
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
			blackbox.SameOutcome(t, final, n.Result(t, f))
		}
		token := blackbox.Headers{"x-auth": final.Header.Get("x-auth")}
		b.Ok(t, "GET", blackbox.SessionsPath, nil, token)
		a.Ok(t, "POST", "/auth/logout", nil, token)
		a.Do(t, "GET", blackbox.SessionsPath, nil, token).Is(t, 401, "TOKEN_REVOKED")
		d.Awaits(t, blackbox.Within(1), 401, "GET", blackbox.SessionsPath, nil, token)
	}
}

// A socket that was opened before its challenge moved receives later events at once.
func TestClusterSocketsFollowMovedChallenge(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false")
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
	time.Sleep(200 * time.Millisecond) // every client is subscribed
	d.Kill()
	c.Forget(d)
	for i, k := range cases {
		if i == 4 {
			b.Stop()
			c.Forget(b)
		}
		var answer blackbox.Answer // a client repeats a request that a node refused without the owner
		blackbox.Until(t, blackbox.Within(5), "the others have taken over", func() bool {
			answer = c.Nodes[i%len(c.Nodes)].Complete(t, k.f, k.f.Method(t, "SMS"), k.code)
			return answer.Status != 503
		})
		answer.Is(t, 200, "")
		k.socket.Expect(k.f, "LOGIN", "METHOD_COMPLETE")
		k.socket.Expect(k.f, "LOGIN", "ACTION_COMPLETE")
	}
}

// The command makes the keys of a cluster and overwrites nothing.
func TestClusterKeyCommand(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, x := range []struct {
		line string
		code int
		say  string
	}{
		{"init A", 0, "ca.key"}, {"init A", 1, "already"}, {"cert A B", 0, second}, {"cert A B", 1, "exists"},
		{"cert B C", 1, "authority"}, {"cert A D", 1, "not a node name"}, {"cert A D --name node-4", 0, "d_d"},
		{"renew A B", 0, " of b, valid until "}, {"renew A D", 0, " of node-4, valid until "},
		{"renew A B --name a", 1, "the certificate of b"}, {"revoke B A/revoked D/revoked", 0, "# b, until "},
		{"status", 1, "CASTELLAN_CLUSTER_ACTOR_ADDR"},
	} {
		s.Says(x.code, "cluster "+strings.NewReplacer("A", first, "B", second, "C", filepath.Join(dir, "c"), "D",
			filepath.Join(dir, "d_d")).Replace(x.line), x.say)
	}
	if _, err := os.Stat(filepath.Join(second, "ca.key")); err == nil {
		t.Error("a node got the authority's key")
	}
	// A folder without keys stops the start, and the message names it.
	s.Set("CLUSTER_GOSSIP_ADDR=127.0.0.1:7946", "CLUSTER_ACTOR_ADDR=127.0.0.1:7947", "CLUSTER_TLS_DIR="+dir)
	s.Says(1, "serve", "cluster keys")
}

// Operators see the members, the shares that they own, the active actors by kind, and the moves when a node
// joined or left.
func TestClusterStatusShowsMembersAndMoves(t *testing.T) {
	t.Parallel()
	c := blackbox.NewSite(t, "postgres").Set("LIMITS_ENABLED=false").Cluster()
	first := c.Join()
	boss, demo := blackbox.Admin(t, c.Site, first), c.Seeded("user")
	look := func(n *blackbox.Node) clusterState { t.Helper(); return stateAt(t, n, boss) }
	var open []blackbox.Flow
	for range 5 {
		f := first.Login(t, demo)
		first.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(first.Code(t, demo, "SMS"))) // its owner is active
		open = append(open, f)
	}
	if s := look(first); s.Activations["challenge"] < 5 || s.Activations["user"] < 1 || s.Node == "" ||
		!s.Belongs || len(s.Members) != 1 || s.Members[0].Version == "" {
		t.Errorf("a cluster of one: %+v", s)
	}
	second := c.Join()
	blackbox.Until(t, blackbox.Within(20), "both see each other",
		func() bool { return len(look(first).Members) == 2 && len(look(second).Members) == 2 })
	for _, f := range open { // by now half of them live on the second node
		second.Complete(t, f, f.Method(t, "SMS"), "000000")
	}
	for range 20 {
		f := second.Login(t, demo)
		second.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(second.Code(t, demo, "SMS")))
	}
	a, b := look(first), look(second)
	if a.Moved == nil || b.Moved == nil || *b.Moved == 0 || a.HandedOver == nil {
		t.Errorf("after a join: %+v and %+v", a, b)
	}
	blackbox.Until(t, blackbox.Within(20), "the shards of rate limits are settled", func() bool {
		owned, replicas, unsettled := 0, 0, 0
		for _, m := range look(second).Members {
			if m.Limits == nil {
				return false
			}
			owned, replicas, unsettled = owned+m.Limits.Owned, replicas+m.Limits.Replica, unsettled+m.Limits.Unsettled
		}
		return owned == 1024 && replicas == 1024 && unsettled == 0
	})
	got := c.CommandWith([]string{"CLUSTER_ACTOR_ADDR=" + first.Actors}, "", "cluster", "status")
	shards := regexp.MustCompile(`(?m) (\d+) +(\d+) +0 +0 +\d+ +\d+ +\d+$`).FindAllStringSubmatch(got.Out, -1)
	if lines := strings.Split(strings.TrimSpace(got.Out), "\n"); got.Code != 0 || len(lines) != 3 ||
		!regexp.MustCompile(`^MEMBER +VERSION +STATE +SHARE +CHALLENGE +(\S+ +)*USER +`+
			`SHARDS +COPIES +UNSETTLED +FOR SILENT +MOVED +HANDED OVER +LAPSES$`).MatchString(lines[0]) ||
		len(shards) != 2 || shards[0][1] != shards[1][2] || shards[1][1] != shards[0][2] ||
		strings.Count(got.Out, " serving ") != 2 || strings.Count(got.Out, " %") != 2 {
		t.Errorf("cluster status:\n%s", got.Out)
	}
}

// A stopped node is seen while it is silent, and leaves a trace on the others and on itself. The command that shows the
// cluster does not wait for it. A node whose membership no other node confirms is not ready, and names the lease.
func TestPausesAreShown(t *testing.T) {
	t.Parallel()
	c := blackbox.NewSite(t, "postgres").Set("LIMITS_ENABLED=false", "LOG_LEVEL=info").Cluster()
	addr := porttest.Free(t)
	asked, frozen, third := c.Join("METRICS_ADDR="+addr), c.Join(), c.Join()
	blackbox.Whole(t, c)
	asked.Awaits(t, blackbox.Within(5), 200, "GET", "/health/ready", nil, nil)
	boss := blackbox.Admin(t, c.Site, asked)
	look := func(n *blackbox.Node) clusterState { t.Helper(); return stateAt(t, n, boss) }
	id := look(frozen).Node
	silent := func(n *blackbox.Node) bool {
		for _, m := range look(n).Members {
			if m.SilentMs > 0 {
				return m.Address == frozen.Actors
			}
		}
		return false
	}
	frozen.Freeze()
	blackbox.Until(t, blackbox.Within(20), "the silence is seen", func() bool { return silent(asked) && silent(third) })
	here := []string{"CLUSTER_ACTOR_ADDR=" + asked.Actors}
	got := c.CommandWith(here, "", "cluster", "status")
	frozen.Thaw()
	silences := strings.Count(got.Out, " no answer ") + strings.Count(got.Out, "then given up") // on a slow machine
	if got.Code != 0 || strings.Count(got.Out, " serving ") != 2 || silences != 1 {
		t.Errorf("cluster status beside a stopped node:\n%s", got.Out)
	}
	for _, n := range c.Nodes {
		blackbox.Until(t, blackbox.Within(20), "the pause is shown", func() bool {
			s := look(n)
			for _, p := range s.Pauses {
				if p.Member == id && p.LastedMs > 500 {
					return n != frozen || s.Lapses > 0
				}
			}
			return false
		})
	}
	for n, line := range map[*blackbox.Node]string{asked: "silent", third: "silent",
		frozen: "this node was stopped or had no processor"} {
		if log := n.Log(); !strings.Contains(log, line) || !strings.Contains(log, "duration=") {
			t.Errorf("no line about %q in the log:\n%s", line, log)
		}
	}
	got = c.CommandWith(here, "", "cluster", "status")
	if _, pauses, _ := strings.Cut(got.Out, "last pauses as "); !strings.Contains(pauses, id+"  silent for ") {
		t.Errorf("cluster status after a pause:\n%s", got.Out)
	}
	frozen.Freeze()
	third.Freeze()
	blackbox.Until(t, blackbox.Within(5), "not ready, because of the lease", func() bool {
		return storetest.Value(asked.Try("GET", "/health/ready", nil, nil))(t).Status == http.StatusServiceUnavailable &&
			blackbox.Value(blackbox.Scrape(t, addr), "castellan_not_ready", "cause=lease") == 1
	})
	frozen.Thaw()
	third.Thaw()
	asked.Awaits(t, blackbox.Within(20), 200, "GET", "/health/ready", nil, nil)
}
