package access

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

// With http.public_url set, a proof names that URL or an origin of http.cors_origins. The host of the request is the
// choice of its sender. A guard route for it makes it a target at the gateway only. Without the setting it counts.
func TestProofNamesTheService(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false", "SESSIONS_BIND=requests", "HTTP_TRUSTED_PROXIES=127.0.0.1/32",
			"HTTP_PUBLIC_URL=https://id.example.com", "HTTP_CORS_ORIGINS=https://app.example.com")
		demo := s.Seeded("user")
		k := &blackbox.Keyed{Key: blackbox.EdKey(t)}
		login := func(base string) blackbox.Answer {
			return n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), k.Proof(t, n, "POST", "/auth/login",
				func(c *dpop.Claims) { c.Target = base + "/auth/login" }))
		}
		login(n.URL).Is(t, 401, "DPOP_INVALID")
		login("https://evil.example").Is(t, 401, "DPOP_INVALID")
		login("https://id.example.com").Is(t, 200, "")
		login("HTTPS://ID.example.com:443/%61uth/..").Is(t, 200, "")
		login("https://app.example.com").Is(t, 200, "")

		n.Ok(t, "POST", "/admin/guard/routes", `{"host":"127.0.0.1","method":"GET","path":"/x","mode":"session"}`,
			blackbox.Admin(t, s, n))
		login(n.URL).Is(t, 401, "DPOP_INVALID")
		f := blackbox.FlowOf(t, login("https://id.example.com"))
		k.Token = n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Header.Get("x-auth")
		for base, want := range map[string]int{n.URL: 204, "https://evil.example": 401} {
			h := k.Proof(t, n, "GET", "/x", func(c *dpop.Claims) { c.Target = base + "/x" })
			h["X-Original-Method"], h["X-Original-URI"], h["X-Original-Host"] = "GET", "/x", strings.TrimPrefix(n.URL, "http://")
			storetest.Equal(t, n.Do(t, "GET", "/guard/check", nil, h).Status, want, "at a gateway for", base)
		}
	})
}
