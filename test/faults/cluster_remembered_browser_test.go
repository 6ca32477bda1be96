package faults

import (
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A browser that one node remembers is known at the others, also after the death of the first, until any of them
// forgets it.
func TestClusterRemembersABrowser(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false", "HTTP_PUBLIC_URL="+publicURL)
	demo := c.Seeded("user")
	a, b, d := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	blackbox.Policy(t, a, blackbox.Admin(t, c.Site, a), "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
	k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
	login := func(n *blackbox.Node) blackbox.Answer {
		k.Token = ""
		return n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), at(t, k, n, "POST", "/auth/login"))
	}
	blackbox.Until(t, blackbox.Within(5), "the policy is known everywhere", func() bool {
		for _, n := range c.Nodes {
			var x struct{ RememberDays int }
			n.Ok(t, "POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN"}`, blackbox.Admin(t, c.Site, a)).Read(t, &x)
			if x.RememberDays != 7 {
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
