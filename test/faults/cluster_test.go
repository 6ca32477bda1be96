package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// A client reaches its challenge, its socket events and its sessions from any node, whichever node owns them.
func TestClusterServesFromAnyNode(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false")
	demo := c.Seeded("user")
	boss := blackbox.Admin(t, c.Site, c.Nodes[0])
	var seen struct {
		Data struct {
			Belongs bool
			Members []struct{ Share float64 }
		}
	}
	c.Nodes[1].Ok(t, "GET", "/admin/cluster", nil, boss).Read(t, &seen)
	if !seen.Data.Belongs || len(seen.Data.Members) != 3 {
		t.Errorf("%+v", seen)
	}
	for _, m := range seen.Data.Members {
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
		blackbox.Until(t, blackbox.Within(1), "the session has ended everywhere", func() bool {
			return d.Do(t, "GET", blackbox.SessionsPath, nil, token).Code() == "TOKEN_REVOKED"
		})
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
