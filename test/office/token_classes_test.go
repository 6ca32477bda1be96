package office

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
)

// impostors are tokens that look genuine, but were not signed by the service in this form.
func impostors(t *testing.T, n *blackbox.Node, genuine string) map[string]string {
	t.Helper()
	parts := strings.Split(genuine, ".")
	header := func(class, kid string, more string) string {
		return blackbox.B64.EncodeToString(
			[]byte(`{"alg":"EdDSA","kid":"` + kid + `","typ":"` + class + `+jwt"` + more + `}`))
	}
	var head struct{ Alg, Kid, Typ string }
	text, err := blackbox.B64.DecodeString(parts[0])
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	if err != nil || head.Alg != "EdDSA" {
		t.Fatalf("header %s: %v", text, err)
	}
	class := strings.TrimSuffix(head.Typ, "+jwt")
	_, own, _ := ed25519.GenerateKey(rand.Reader)
	signed := func(head, body string) string {
		return head + "." + body + "." + blackbox.B64.EncodeToString(ed25519.Sign(own, []byte(head+"."+body)))
	}
	public := publicKey(t, n, head.Kid)
	hs := blackbox.B64.EncodeToString([]byte(`{"alg":"HS256","kid":"` + head.Kid + `","typ":"` + head.Typ + `"}`))
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(hs + "." + parts[1]))
	signature := []byte(parts[2])
	signature[10] ^= 1
	claims, _ := blackbox.B64.DecodeString(parts[1])
	longer := strings.Replace(string(claims), `"exp":1`, `"exp":2`, 1)
	last := parts[2][len(parts[2])-1]
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	trailing := parts[2][:len(parts[2])-1] + string(alphabet[strings.IndexByte(alphabet, last)|3])
	if trailing == parts[2] {
		t.Fatal("the signature's last character has trailing bits")
	}
	return map[string]string{
		"garbage": "x", "dots": "..", "empty signature": parts[0] + "." + parts[1] + ".",
		"alg none": blackbox.B64.EncodeToString([]byte(`{"alg":"none","typ":"`+head.Typ+`"}`)) + "." + parts[1] +
			".",
		"public key as secret": hs + "." + parts[1] + "." + blackbox.B64.EncodeToString(mac.Sum(nil)),
		"another key":          signed(parts[0], parts[1]),
		"another kid":          signed(header(class, "../../dev/null", ""), parts[1]),
		"key in the header":    signed(header(class, head.Kid, `,"jku":"http://127.0.0.1:1/"`), parts[1]),
		"bit of the signature": parts[0] + "." + parts[1] + "." + string(signature),
		"later exp":            parts[0] + "." + blackbox.B64.EncodeToString([]byte(longer)) + "." + parts[2],
		"trailing bits":        parts[0] + "." + parts[1] + "." + trailing,
		"padding":              genuine + "==",
		"cut":                  genuine[:len(genuine)-1],
		"a part more":          genuine + "." + parts[2],
		"two":                  genuine + "," + genuine,
		"upper case":           strings.ToUpper(genuine),
		"other alphabet":       strings.NewReplacer("-", "+", "_", "/").Replace(genuine) + "+",
		"bearer":               "Bearer " + genuine,
		"long":                 genuine + strings.Repeat("A", 5000),
	}
}

func publicKey(t *testing.T, n *blackbox.Node, kid string) ed25519.PublicKey {
	t.Helper()
	for _, k := range jwks(t, n) {
		if k.Kid == kid {
			x, err := blackbox.B64.DecodeString(k.X)
			storetest.Must(t, err)
			return x
		}
	}
	t.Fatalf("the key set has no %s", kid)
	return nil
}

type jwk struct{ Kty, Crv, Kid, X, Alg, Use, D string }

func jwks(t *testing.T, n *blackbox.Node) []jwk {
	t.Helper()
	var set struct{ Keys []jwk }
	// Clients keep the keys for less time than a new key is published before it signs.
	n.Ok(t, "GET", "/.well-known/jwks.json", nil, nil).
		With(t, "Content-Type", "application/jwk-set+json").
		With(t, "Cache-Control", "public, max-age=10").
		Read(t, &set)
	for _, k := range set.Keys {
		if k.Kty != "OKP" || k.Crv != "Ed25519" || k.Kid == "" || k.D != "" {
			t.Errorf("a published key: %+v", k)
		}
	}
	return set.Keys
}

// Every class of token at every endpoint of the table (SEC-19, SEC-20, SEC-24, D-AUTH-01). The required class
// passes, a user without the role gets 403, and any other token gets 401.
func TestEveryEndpointAcceptsOnlyItsTokenClass(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		// Tokens that were once valid: of another tenant and issuer with the same keys, and with a short
		// lifetime.
		n := s.Start("TENANT_ID=other")
		otherTenant := blackbox.Admin(t, s, n)["x-auth"]
		n.Stop()
		n = s.Start("TOKENS_ISSUER=elsewhere")
		otherIssuer := blackbox.Admin(t, s, n)["x-auth"]
		n.Stop()
		n = s.Start("TOKENS_X_AUTH_TTL=5s", "MFA_P_AUTH_GRACE=0s", "MFA_CHALLENGE_TTL=1s")
		boss := blackbox.Admin(t, s, n)
		blackbox.Tune(t, n, boss, "SMS", 1_000, 0)
		blackbox.Tune(t, n, boss, "MAIL", 1_000, 0)
		expiredX, expiredP := boss["x-auth"], n.Login(t, s.Seeded("user")).PAuth
		expires := time.Unix(int64(blackbox.ClaimsOf(t, expiredX)["exp"].(float64)), 0)
		blackbox.Tune(t, n, boss, "SMS", 120_000, 0) // for the logins below
		blackbox.Tune(t, n, boss, "MAIL", 120_000, 0)
		n.Stop()

		n = s.Start()
		boss = blackbox.Admin(t, s, n)
		user, _ := n.Session(t, s.Seeded("user"))
		revoked, _ := n.Session(t, s.Seeded("user"))
		n.Ok(t, "POST", "/auth/logout", nil, blackbox.Headers{"x-auth": revoked})
		open := n.Login(t, s.Seeded("user"))
		time.Sleep(time.Until(expires) + 20*time.Millisecond)

		type try struct {
			name   string
			header blackbox.Headers
			code   string // of an endpoint that needs x-auth; pCode of one that needs p-auth; "" passes
			pCode  string
		}
		const no, expired = "UNAUTHENTICATED", "TOKEN_EXPIRED"
		tries := []try{
			{"none", nil, no, no},
			{"user", blackbox.Headers{"x-auth": user}, "", no},
			{"p-auth", blackbox.Headers{"p-auth": open.PAuth}, no, ""},
			{"p-auth as x-auth", blackbox.Headers{"x-auth": open.PAuth}, no, no},
			{"p-auth as ot-auth", blackbox.Headers{"ot-auth": open.PAuth}, no, no},
			{"x-auth as p-auth", blackbox.Headers{"p-auth": boss["x-auth"]}, no, no},
			{"x-auth as bearer", blackbox.Headers{"Authorization": "Bearer " + boss["x-auth"]}, no, no},
			{"x-auth as cookie", blackbox.Headers{"Cookie": "x-auth=" + boss["x-auth"]}, no, no},
			{"other tenant", blackbox.Headers{"x-auth": otherTenant}, no, no},
			{"other issuer", blackbox.Headers{"x-auth": otherIssuer}, no, no},
			{"expired", blackbox.Headers{"x-auth": expiredX, "p-auth": expiredP}, expired, expired},
			{"revoked", blackbox.Headers{"x-auth": revoked}, "TOKEN_REVOKED", no},
		}
		forged := func(header, genuine string) (all []try) {
			for name, token := range impostors(t, n, genuine) {
				all = append(all, try{header + ": " + name, blackbox.Headers{header: token}, no, no})
			}
			return all
		}
		forgedX, forgedP := forged("x-auth", boss["x-auth"]), forged("p-auth", open.PAuth)

		asked := 0
		for i, e := range httpapi.Endpoints() {
			// One check serves all endpoints, so each forgery is tried at some of them.
			tries := append(slices.Clone(tries), forgedX[i%len(forgedX)])
			if e.Credential == rest.PAuth || e.Credential == rest.PAuthOrDevice {
				tries = append(tries, forgedP...)
			}
			ask := func(h blackbox.Headers) blackbox.Answer {
				t.Helper()
				asked++
				var body any
				if e.Method != "GET" {
					body = "{}"
				}
				return n.Do(t, e.Method, strings.NewReplacer("{id}", "none", "{job}", "none").Replace(e.Path), body, h)
			}
			passes := func(name string, a blackbox.Answer) {
				t.Helper()
				if e.Renewal && a.Code() == "DPOP_INVALID" { // a session without a key
					return
				}
				if a.Status == 401 || a.Status == 403 || a.Status >= 500 {
					t.Errorf("%s with %s: %s, want to pass the guard", e.Key(), name, a)
				}
			}
			for _, try := range tries {
				if e.Path == "/auth/logout" && try.name == "user" { // it would end the session
					continue
				}
				a := ask(try.header)
				want := try.code
				switch e.Credential {
				case rest.NoAuth:
					passes(try.name, a)
					continue
				case rest.PAuth, rest.PAuthOrDevice:
					want = try.pCode
				case rest.OTAuth: // none of these tokens has its class
					want = no
				case rest.Service: // a token is no key
					want = no
				case rest.Device: // a token is no signature
					want = "DEVICE_SIGNATURE_REQUIRED"
				case rest.User, rest.Tenant, rest.TenantOrCron, rest.TenantOrService:
				default:
					t.Fatalf("%s has credential %s: this test does not know it", e.Key(), e.Credential)
				}
				switch {
				case want != "" && (a.Status != 401 || a.Code() != want):
					t.Errorf("%s with %s: %s, want 401 %s", e.Key(), try.name, a, want)
				case want == "" && e.Audience == rest.Admin:
					a.Is(t, 403, "FORBIDDEN")
				case want == "":
					passes(try.name, a)
				}
			}
			if e.Credential == rest.User || e.Credential == rest.Tenant {
				token := boss["x-auth"]
				if e.Path == "/auth/logout" {
					token, _ = n.Session(t, s.Seeded("admin"))
				}
				passes("admin beside another credential", ask(blackbox.Headers{"x-auth": token, "p-auth": "x"}))
			}
		}
		t.Logf("%d requests over the table", asked)

		for i := 0; i < len(user); i += 50 {
			n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": user[:i]}).Is(t, 401, "UNAUTHENTICATED")
		}
		n.Do(t, "GET", blackbox.SessionsPath+"?x-auth="+user, nil, nil).Is(t, 401, "UNAUTHENTICATED")
		n.Do(t, "GET", blackbox.ResultPath+"?p-auth="+open.PAuth, nil, nil).
			Is(t, 401, "UNAUTHENTICATED")
		// a token in the query is for the socket only
	})
}

// The socket is refused before the upgrade, with the usual problem document (D-SOCK-01, REQ-SOCK-01).
func TestSocketIsRefusedBeforeUpgrade(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("HTTP_CORS_ORIGINS=https://app.example.test")
		n := s.Start()
		f := n.Login(t, s.Seeded("user"))
		boss := blackbox.Admin(t, s, n)
		upgrade := func(more blackbox.Headers) blackbox.Answer {
			t.Helper()
			h := blackbox.Headers{
				"Connection":            "Upgrade",
				"Upgrade":               "websocket",
				"Sec-WebSocket-Version": "13",
				"Sec-WebSocket-Key":     "dGhlIHNhbXBsZSBub25jZQ==",
			}
			for k, v := range more {
				h[k] = v
			}
			return n.Do(t, "GET", "/2fa", nil, h)
		}
		upgrade(nil).Is(t, 401, "UNAUTHENTICATED")
		upgrade(boss).Is(t, 401, "UNAUTHENTICATED")
		upgrade(blackbox.Headers{"p-auth": boss["x-auth"]}).Is(t, 401, "UNAUTHENTICATED")
		upgrade(blackbox.Headers{"Sec-WebSocket-Protocol": "p-auth"}).Is(t, 401, "UNAUTHENTICATED")
		for name, token := range impostors(t, n, f.PAuth) {
			if a := upgrade(blackbox.Headers{"p-auth": token}); a.Status != 401 {
				t.Errorf("%s: %s", name, a)
			}
		}
		upgrade(blackbox.Headers{"p-auth": f.PAuth, "Origin": "https://evil.example.test"}).Is(t, 403, "FORBIDDEN")
		if a := n.Do(t, "GET", "/2fa", nil, blackbox.Headers{"p-auth": f.PAuth}); a.Status/100 != 4 ||
			a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("no handshake: %s", a)
		}
		n.Do(t, "POST", "/2fa", "{}", blackbox.Headers{"p-auth": f.PAuth}).Is(t, 405, "METHOD_NOT_ALLOWED")

		if strings.Contains(n.Log(), f.PAuth) {
			t.Error("the log shows a token")
		}
	})
}
