package access

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

// A session that was bound to a key at its login gets new tokens by proofs of that key, also after its token has
// expired. Every end of the session ends that (D-AUTH-16).
func TestSessionIsRenewedByItsKey(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false", "TOKENS_X_AUTH_TTL=5s")
		demo := s.Seeded("user")
		for name, k := range map[string]*blackbox.Keyed{"ES256": {Key: blackbox.ECKey(t)},
			"EdDSA": {Key: blackbox.EdKey(t)}} {
			k.Login(t, n, demo)
			first := blackbox.ClaimsOf(t, k.Token)
			key, _ := device.PublicKey(k.Key)
			if cnf, _ := first["cnf"].(map[string]any); cnf["jkt"] != key.Thumbprint() {
				t.Fatalf("%s: %v", name, first)
			}
			var at struct {
				Data struct{ ExpiresAt, SessionEndsAt time.Time }
			}
			k.Renew(t, n).Is(t, 200, "").Read(t, &at)
			second := blackbox.ClaimsOf(t, k.Token)
			if second["sid"] != first["sid"] || second["jti"] == first["jti"] || second["auth_time"] != first["auth_time"] ||
				at.Data.ExpiresAt.Unix() != int64(second["exp"].(float64)) {
				t.Errorf("%s: %v, then %v, %+v", name, first, second, at)
			}
			if left := time.Until(at.Data.SessionEndsAt); left < 11*time.Hour || left > 12*time.Hour {
				t.Errorf("the session ends in %v", left)
			}
			n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": k.Token})
			blackbox.Until(t, blackbox.Within(8), "the token expires", func() bool {
				return n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": k.Token}).Code() == "TOKEN_EXPIRED"
			})
			k.Renew(t, n).Is(t, 200, "")
			if all := blackbox.Sessions(t, n, k.Token); all[0].SessionID != first["sid"] || !all[0].Current {
				t.Errorf("%+v", all)
			}
			n.Ok(t, "POST", "/auth/logout", nil, blackbox.Headers{"x-auth": k.Token})
			k.Renew(t, n).Is(t, 401, "TOKEN_REVOKED")
		}

		k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
		k.Login(t, n, demo)
		plain, _ := n.Session(t, demo)
		n.Ok(t, "DELETE", blackbox.SessionsPath, `{"all":true}`, blackbox.Headers{"x-auth": plain})
		k.Renew(t, n).Is(t, 401, "TOKEN_REVOKED")
	})
}

// With bind: requests, a token of a bound session is worthless without its key: each request needs a proof of its own,
// which is good once on any node. Sessions without a key work as before.
func TestRequestsNeedProofs(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false", "SESSIONS_BIND=requests")
		demo := s.Seeded("user")
		k, thief := &blackbox.Keyed{Key: blackbox.ECKey(t)}, &blackbox.Keyed{Key: blackbox.EdKey(t)}
		k.Login(t, n, demo)
		thief.Token = k.Token
		get := func(h blackbox.Headers) blackbox.Answer { return n.Do(t, "GET", blackbox.SessionsPath, nil, h) }
		h := k.Proof(t, n, "GET", blackbox.SessionsPath)
		get(h).Is(t, 200, "")
		for range 5 {
			get(h).Is(t, 401, "DPOP_INVALID")
		}
		get(blackbox.Headers{"x-auth": k.Token}).Is(t, 401, "DPOP_INVALID")
		get(k.Proof(t, n, "POST", blackbox.SessionsPath)).Is(t, 401, "DPOP_INVALID")
		get(k.Proof(t, n, "GET", "/auth/devices")).Is(t, 401, "DPOP_INVALID")
		get(thief.Proof(t, n, "GET", blackbox.SessionsPath)).Is(t, 401, "DPOP_INVALID")
		get(k.Proof(t, n, "GET", blackbox.SessionsPath, func(c *dpop.Claims) { c.TokenHash = "" })).
			Is(t, 401, "DPOP_INVALID")
		n.Do(t, "GET", blackbox.SessionsPath+"?x=1", nil, k.Proof(t, n, "GET", blackbox.SessionsPath)).Is(t, 200, "")
		k.Renew(t, n).Is(t, 200, "")
		get(k.Proof(t, n, "GET", blackbox.SessionsPath)).Is(t, 200, "")
		nonce := get(k.Proof(t, n, "GET", blackbox.SessionsPath, func(c *dpop.Claims) { c.IssuedAt = 1 })).
			Is(t, 401, "DPOP_INVALID").Header.Get("dpop-nonce")
		get(k.Proof(t, n, "GET", blackbox.SessionsPath, func(c *dpop.Claims) { c.IssuedAt, c.Nonce = 1, nonce })).
			Is(t, 200, "")
		plain, _ := n.Session(t, demo)
		get(blackbox.Headers{"x-auth": plain}).Is(t, 200, "")
	})
}

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
			if got := n.Do(t, "GET", "/guard/check", nil, h); got.Status != want {
				t.Errorf("at a gateway for %s: %s", base, got)
			}
		}
	})
}
