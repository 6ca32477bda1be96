package faults

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"

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
func everywhere(t *testing.T, nodes []*blackbox.Node, method, path string, h blackbox.Headers) int {
	t.Helper()
	var won atomic.Int32
	var wg sync.WaitGroup
	for _, n := range nodes {
		for range 2 {
			wg.Go(func() {
				switch got, err := n.Try(method, path, nil, h); {
				case err != nil:
					t.Error(err)
				case got.Status == 200:
					won.Add(1)
				case got.Status != 503 && got.Code() != "DPOP_INVALID":
					t.Errorf("%s", got)
				}
			})
		}
	}
	wg.Wait()
	return int(won.Load())
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
