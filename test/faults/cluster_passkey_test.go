package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/factor/passkey/passkeytest"
	"castellan/internal/blackbox"
)

// A passkey of one node logs in at any other, also with a ticket of a node that died. A ticket opens one session in the
// whole cluster, and one that a killed node has answered is used up.
func TestClusterAcceptsAnAssertionOnce(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false", "HTTP_PUBLIC_URL="+publicURL,
		"LIMITS_EXEMPT_CIDRS=127.0.0.0/8")
	demo := c.Seeded("user")
	a, b, d := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	x, _ := a.Session(t, demo)
	browser := passkeytest.New(t, strings.TrimPrefix(publicURL, "https://"), publicURL)
	p := blackbox.EnrollPasskeyOf(t, browser, a, demo, x)
	blackbox.Policy(t, a, blackbox.Admin(t, c.Site, a), "LOGIN", 1, `[["PUSH"],["SMS"]]`, `,"passkeyAlone":true`)

	type login struct {
		body json.RawMessage
		x    string // the session that a node has answered
	}
	var unknown atomic.Int32 // answers that say nothing of the ticket
	try := func(n *blackbox.Node, l login) (token string, err error) {
		got, err := n.Try("POST", "/auth/login", l.body, nil)
		if err != nil || got.Status == 503 {
			unknown.Add(1)
			return "", err
		}
		if got.Status == 200 || got.Code() == "INVALID_CREDENTIALS" {
			return got.Header.Get("x-auth"), nil
		}
		t.Errorf("%s", got)
		return "", nil
	}
	prepare := func(n *blackbox.Node) login {
		p.N = n
		options, ticket := p.Options(t)
		return login{body: json.RawMessage(fmt.Sprintf(`{"ticket":%q,"assertion":%s}`, ticket, p.Get(t, options)))}
	}
	once := func(nodes []*blackbox.Node, l login) int {
		var mu sync.Mutex
		var wg sync.WaitGroup
		opened := 0
		for _, n := range slices.Concat(nodes, nodes) {
			wg.Go(func() {
				x, err := try(n, l)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if x != "" {
					opened++
				}
			})
		}
		wg.Wait()
		return opened
	}
	for _, n := range c.Nodes {
		blackbox.Until(t, blackbox.Within(5), "the policy is known at the node", func() bool {
			x, err := try(n, prepare(a))
			return err == nil && x != ""
		})
	}
	// A ticket that meets a pause of a starved node may be used and open nothing; another one must open a session.
	opensOne := func(nodes []*blackbox.Node, l login) {
		t.Helper()
		for spent := 0; ; spent++ {
			unknown.Store(0)
			opened := once(nodes, l)
			if opened == 1 {
				return
			}
			if opened > 1 || unknown.Load() == 0 || spent == 5 {
				t.Fatalf("one ticket opened %d sessions, %d answers were 503", opened, unknown.Load())
			}
			l = prepare(nodes[0])
		}
	}
	for i := range 10 {
		opensOne(c.Nodes, prepare(c.Nodes[i%3]))
	}

	// A node dies while four clients log in at it.
	tickets, spare := make([]login, 80), prepare(d)
	for i := range tickets {
		tickets[i] = prepare(d)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := i; j < len(tickets); j += 4 {
				x, err := try(d, tickets[j])
				tickets[j].x = x
				if err != nil {
					return
				}
				if j == 40 {
					d.Kill()
				}
			}
		})
	}
	wg.Wait()
	c.Forget(d)
	answered := 0
	for _, l := range tickets {
		opened := once([]*blackbox.Node{a, b}, l)
		if l.x != "" {
			answered++
			a.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": l.x})
		}
		if opened > 1 || opened == 1 && l.x != "" {
			t.Errorf("a ticket opened %d sessions after the answer %q", opened, l.x)
		}
	}
	if answered < 20 {
		t.Errorf("only %d logins were answered", answered)
	}
	opensOne([]*blackbox.Node{a, b}, spare) // made by the dead node
}
