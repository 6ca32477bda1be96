package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

var stolen = flag.Int("stolen", 600, "requests with a stolen token in TestClusterAcceptsAProofOnce")

// publicURL is the one name of all nodes: a proof that names it is right at each.
const publicURL = "https://accounts.example.test"

// at is a proof for any node.
func at(t testing.TB, k *blackbox.Keyed, n *blackbox.Node, method, path string) blackbox.Headers {
	return k.Proof(t, n, method, path, func(c *dpop.Claims) { c.Target = publicURL + path })
}

// everywhere sends one request to every node at once, twice, and counts the successes. Any other answer is a refusal of
// the proof.
func everywhere(t *testing.T, nodes []*blackbox.Node, method, path string, h blackbox.Headers) (won int) {
	t.Helper()
	for _, got := range blackbox.Crowd(t, 2*len(nodes), func(i int) (blackbox.Answer, error) {
		return nodes[i%len(nodes)].Try(method, path, nil, h)
	}) {
		switch {
		case got.Status == 200:
			won++
		case got.Status != 503 && got.Code() != "DPOP_INVALID":
			t.Errorf("%s", got)
		}
	}
	return won
}

// A proof is good once in the whole cluster: the database decides, so neither the node nor its death matters. A client
// whose node died renews at another one, with its last token.
func TestClusterAcceptsAProofOnce(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false", "HTTP_PUBLIC_URL="+publicURL, "SESSIONS_BIND=requests")
	demo := c.Seeded("user")
	a, b, d := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	k := &blackbox.Keyed{Key: blackbox.ECKey(t), At: publicURL}
	k.Login(t, a, demo)
	for i := range 40 {
		method, path := "GET", blackbox.SessionsPath
		if i%2 == 0 {
			method, path = "POST", blackbox.RenewSessionPath
		}
		storetest.Equal(t, everywhere(t, c.Nodes, method, path, at(t, k, a, method, path)), 1, "uses of a proof", method,
			path)
	}

	// A stolen token is worthless at every node.
	thief := &blackbox.Keyed{Key: blackbox.EdKey(t), Token: k.Token}
	var tries sync.WaitGroup
	for i := range 6 {
		tries.Go(func() {
			for j := range *stolen / 6 {
				n, h := c.Nodes[i%3], blackbox.Headers{"x-auth": k.Token}
				if j%2 == 0 {
					h = at(t, thief, n, "GET", blackbox.SessionsPath)
				}
				if got, err := n.Try("GET", blackbox.SessionsPath, nil, h); err != nil || got.Code() != "DPOP_INVALID" {
					t.Errorf("a stolen token: %s, %v", got, err)
					return
				}
			}
		})
	}
	tries.Wait()

	// A node dies while it renews. A proof that it has answered is used up; another one is accepted at most once.
	type sent struct {
		h        blackbox.Headers
		answered bool
	}
	var all []sent
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				h := at(t, k, d, "POST", blackbox.RenewSessionPath)
				got, err := d.Try("POST", blackbox.RenewSessionPath, nil, h)
				mu.Lock()
				all = append(all, sent{h, err == nil && got.Status == 200})
				n := len(all)
				mu.Unlock()
				if n == 40 {
					d.Kill()
				}
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	c.Forget(d)
	answered := 0
	for _, s := range all {
		won := everywhere(t, []*blackbox.Node{a, b}, "POST", blackbox.RenewSessionPath, s.h)
		if s.answered {
			answered++
		}
		if won > 1 || won == 1 && s.answered {
			t.Errorf("a proof was accepted %d times after the answer %v", won, s.answered)
		}
	}
	if answered < 20 {
		t.Errorf("only %d of %d renewals were answered", answered, len(all))
	}
	for _, n := range c.Nodes {
		blackbox.Until(t, blackbox.Within(5), "the client renews at another node", func() bool {
			got := n.Do(t, "POST", blackbox.RenewSessionPath, nil, at(t, k, n, "POST", blackbox.RenewSessionPath))
			return got.Status == 200
		})
	}
	b.Ok(t, "POST", "/auth/logout", nil, at(t, k, b, "POST", "/auth/logout"))
	a.Do(t, "POST", blackbox.RenewSessionPath, nil, at(t, k, a, "POST", blackbox.RenewSessionPath)).Is(t, 401,
		"TOKEN_REVOKED")
}

// A browser that one node remembers is known at the others, also after the death of the first, until any of them
// forgets it.
func TestClusterRemembersABrowser(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false", "HTTP_PUBLIC_URL="+publicURL)
	demo := c.Seeded("user")
	a, b, d := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	boss := blackbox.Admin(t, c.Site, a)
	blackbox.Policy(t, a, boss, "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
	k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
	login := func(n *blackbox.Node) blackbox.Answer {
		k.Token = ""
		return n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), at(t, k, n, "POST", "/auth/login"))
	}
	blackbox.Until(t, blackbox.Within(5), "the policy is known everywhere", func() bool {
		for _, n := range c.Nodes {
			explained := n.Ok(t, "POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN"}`, boss)
			if explained.At(t, "rememberDays") != "7" {
				return false
			}
		}
		return true
	})
	f := blackbox.FlowOf(t, login(a))
	m := f.Method(t, "SMS")
	b.Do(t, "POST", blackbox.CompletePath, map[string]any{"methodId": m.ID, "method": m.Name,
		"value": a.Code(t, demo, "SMS"), "remember": true}, blackbox.Headers{"p-auth": f.PAuth}).Is(t, 200, "")
	a.Kill()
	x := login(d).Is(t, 200, "").Header.Get("x-auth")
	if x == "" {
		t.Fatal("another node does not remember the browser")
	}
	b.Do(t, "DELETE", "/auth/remembered", `{"all":true}`, blackbox.Headers{"x-auth": x}).Is(t, 200, "")
	for _, n := range []*blackbox.Node{d, b} {
		storetest.Equal(t, login(n).Is(t, 200, "").Header.Get("x-auth"), "", "token from a forgotten browser")
	}
}

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
	opened := func(got blackbox.Answer) (token string) {
		switch {
		case got.Status == 503:
			unknown.Add(1)
		case got.Status == 200 || got.Code() == "INVALID_CREDENTIALS":
			return got.Header.Get("x-auth")
		default:
			t.Errorf("%s", got)
		}
		return ""
	}
	try := func(n *blackbox.Node, l login) (token string, err error) {
		got, err := n.Try("POST", "/auth/login", l.body, nil)
		if err != nil {
			return "", err
		}
		return opened(got), nil
	}
	prepare := func(n *blackbox.Node) login {
		p.N = n
		options, ticket := p.Options(t)
		return login{body: json.RawMessage(fmt.Sprintf(`{"ticket":%q,"assertion":%s}`, ticket, p.Get(t, options)))}
	}
	once := func(nodes []*blackbox.Node, l login) (sessions int) {
		t.Helper()
		for _, got := range blackbox.Crowd(t, 2*len(nodes), func(i int) (blackbox.Answer, error) {
			return nodes[i%len(nodes)].Try("POST", "/auth/login", l.body, nil)
		}) {
			if opened(got) != "" {
				sessions++
			}
		}
		return sessions
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
			sessions := once(nodes, l)
			if sessions == 1 {
				return
			}
			if sessions > 1 || unknown.Load() == 0 || spent == 5 {
				t.Fatalf("one ticket opened %d sessions, %d answers were 503", sessions, unknown.Load())
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
		sessions := once([]*blackbox.Node{a, b}, l)
		if l.x != "" {
			answered++
			a.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": l.x})
		}
		if sessions > 1 || sessions == 1 && l.x != "" {
			t.Errorf("a ticket opened %d sessions after the answer %q", sessions, l.x)
		}
	}
	if answered < 20 {
		t.Errorf("only %d logins were answered", answered)
	}
	opensOne([]*blackbox.Node{a, b}, spare) // made by the dead node
}
