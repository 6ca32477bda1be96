package faults

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Values that are no token, or a token of another kind.
var replaysOfTokens = []replay{
	{"CVE-2026-27840", "ZITADEL: a truncated access token was accepted", func(t *testing.T, s stage) {
		_, me := s.known()
		whole := me["x-auth"]
		for _, n := range []int{1, 2, 3, 4, 8, 16, 43, 86, 87, len(whole) / 2, len(whole) - 80} {
			s.sessions(blackbox.Headers{"x-auth": whole[:len(whole)-n]}).Is(t, 401, "UNAUTHENTICATED")
		}
		s.open(me)
	}, nil},
	{"CVE-2026-55669", "ZITADEL: a JWT of the correct issuer for another audience was accepted",
		func(t *testing.T, s stage) {
			a, me := s.known()
			f, once := s.begin(a), s.onceFor(a)
			for _, wrong := range []string{f.PAuth, once["ot-auth"]} {
				s.sessions(blackbox.Headers{"x-auth": wrong}).Is(t, 401, "UNAUTHENTICATED")
			}
			for _, wrong := range []string{me["x-auth"], once["ot-auth"]} {
				s.Ask("GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": wrong}).Is(t, 401, "UNAUTHENTICATED")
			}
			for _, wrong := range []string{me["x-auth"], f.PAuth} {
				s.update("a-new-lantern", blackbox.Headers{"ot-auth": wrong}).Is(t, 401, "UNAUTHENTICATED")
			}
			s.open(me)
			s.Result(f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
			s.update("a-new-lantern", once).Is(t, 200, "")
		}, nil},
	{"CVE-2026-25748", "authentik: an unreadable credential was accepted",
		func(t *testing.T, s stage) {
			_, me := s.known()
			for _, odd := range []string{"null", "undefined", "{}", "[]", "true", "0", ".", "..", "...", "%", "%00", "é",
				"e30.e30.e30",
				"e30.e30.", strings.Repeat(".", 400), "a=b; x", "\"" + me["x-auth"] + "\"", me["x-auth"] + ".", "Bearer", "-"} {
				s.sessions(blackbox.Headers{"x-auth": odd}).Is(t, 401, "UNAUTHENTICATED")
				s.Ask("GET", blackbox.RulesPath, nil, blackbox.Headers{"x-auth": odd}).Is(t, 401, "UNAUTHENTICATED")
			}
			s.open(me)
		}, nil},
	{"CVE-2026-9803", "Keycloak: a partial Authorization header was answered with 500", func(t *testing.T, s stage) {
		a := s.user()
		for _, odd := range []string{"Bearer", "Bearer ", "Bearer  ", "bearer", "Basic", "Basic =", "Bearer a b",
			" ", ",", "DPoP x"} {
			h := blackbox.Headers{"Authorization": odd}
			s.sessions(h).Is(t, 401, "UNAUTHENTICATED")
			s.Ask("POST", blackbox.DevicesPath, "{}", h).Is(t, 401, "UNAUTHENTICATED")
		}
		s.Ask("POST", "/auth/login", blackbox.LoginBody(a), blackbox.Headers{"Authorization": "Bearer"}).Is(t, 200, "")
	}, nil},
	{"CVE-2024-51744", "golang-jwt: an expired and forged token was reported only as expired",
		func(t *testing.T, s stage) {
			_, me := s.known()
			parts := strings.Split(me["x-auth"], ".")
			claims := blackbox.ClaimsOf(t, me["x-auth"])
			text := storetest.Value(blackbox.B64.DecodeString(parts[1]))(t)
			exp := strings.Split(strings.SplitAfter(string(text), `"exp":`)[1], ",")[0]
			late := strings.Replace(string(text), `"exp":`+exp, `"exp":1000000000`, 1)
			if late == string(text) || claims["exp"] == nil {
				t.Fatalf("no exp in %s", text)
			}
			_, own, _ := ed25519.GenerateKey(rand.Reader)
			body := parts[0] + "." + blackbox.B64.EncodeToString([]byte(late))
			for _, sig := range []string{parts[2], blackbox.B64.EncodeToString(ed25519.Sign(own, []byte(body))), ""} {
				s.sessions(blackbox.Headers{"x-auth": body + "." + sig}).Is(t, 401, "UNAUTHENTICATED")
			}
			s.open(me)
		}, nil},
	{"CVE-2025-30204", "golang-jwt: a header of thousands of full stops was split into as many parts",
		func(t *testing.T, s stage) {
			_, me := s.known()
			took := time.Now()
			for range 20 {
				s.sessions(blackbox.Headers{"x-auth": strings.Repeat(".", 7000)}).Is(t, 401, "UNAUTHENTICATED")
				s.sessions(blackbox.Headers{"x-auth": me["x-auth"] + strings.Repeat(".a", 3000)}).Is(t, 401, "UNAUTHENTICATED")
			}
			if took := time.Since(took); took > blackbox.Within(5) {
				t.Errorf("forty refusals took %v", took)
			}
			s.Ask("GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": strings.Repeat(".", 9<<10)}).
				Is(t, 431, "HEADERS_TOO_LARGE")
			s.open(me)
		}, nil},
	{"CVE-2025-27144", "go-jose: a signature of thousands of full stops was split into as many parts",
		func(t *testing.T, s stage) {
			a, me := s.known()
			p := s.phone(a, me)
			f := s.begin(a)
			body, h := p.Decision(t, f, "APPROVED")
			for _, proof := range []string{strings.Repeat(".", 7000), h["device-signature"] + strings.Repeat(".", 3000),
				strings.Repeat("e30.", 1000)} {
				s.Ask("POST", blackbox.CompletePath, body, blackbox.Headers{"device-signature": proof}).
					Is(t, 401, "DEVICE_SIGNATURE_INVALID")
			}
			s.Ask("POST", blackbox.CompletePath, body, h).Is(t, 200, "")
		}, nil},
	{"CVE-2024-28180", "go-jose: an encrypted token was decompressed to any size", func(t *testing.T, s stage) {
		_, me := s.known()
		zeros := packed(t, strings.Repeat("\x00", 4<<20))
		head := blackbox.B64.EncodeToString([]byte(`{"alg":"dir","enc":"A256GCM","zip":"DEF","typ":"x-auth+jwt"}`))
		s.sessions(blackbox.Headers{"x-auth": head + "..AAAA." + blackbox.B64.EncodeToString(zeros)[:5000] + ".AAAA"}).
			Is(t, 401, "UNAUTHENTICATED")
		signed := blackbox.B64.EncodeToString([]byte(`{"alg":"EdDSA","zip":"DEF","typ":"x-auth+jwt"}`))
		s.sessions(blackbox.Headers{"x-auth": signed + "." + strings.SplitN(me["x-auth"], ".", 2)[1]}).
			Is(t, 401, "UNAUTHENTICATED")
		for _, coding := range []string{"gzip", "gzip, gzip", "deflate", "br", "zstd"} {
			s.Ask("POST", "/auth/login", zeros, blackbox.Headers{"Content-Encoding": coding}).Is(t, 415, "UNSUPPORTED_MEDIA")
		}
		s.open(me)
	}, nil},
	{"CVE-2026-18963", "Keycloak: an unverified password reset set a new password",
		func(t *testing.T, s stage) {
			a, attacker := s.user(), s.user()
			me := s.Session(attacker)
			f := s.reset(a)
			for _, h := range []blackbox.Headers{nil, me, {"p-auth": f.PAuth}, {"ot-auth": f.PAuth}, {"ot-auth": me["x-auth"]},
				{"x-auth": f.PAuth}, {"ot-auth": ""}} {
				s.update("the-attacker-s-lantern", h).Is(t, 401, "UNAUTHENTICATED")
			}
			storetest.Equal(t, s.Result(f).Is(t, 409, "CHALLENGE_NOT_COMPLETED").Header.Get("ot-auth"), "",
				"ot-auth without a proof")
			s.update("the-attacker-s-lantern", s.onceFor(attacker)).Is(t, 200, "") // it is the attacker's own
			s.begin(a)
			s.update("a-new-lantern", s.onceFor(a)).Is(t, 200, "")
			s.Login(a).Is(t, 401, "INVALID_CREDENTIALS")
		}, nil},
	{"CVE-2025-64103", "ZITADEL: one factor was enough although two were required", func(t *testing.T, s stage) {
		a := s.user()
		f := s.reset(a)
		code := s.Code(t, a, "SMS")
		s.Complete(f, f.Method(t, "SMS"), code).Is(t, 200, "").Keys(t, "action")
		s.Complete(f, f.Method(t, "SMS"), code).Is(t, 409, "METHOD_ALREADY_COMPLETED")
		s.Complete(f, blackbox.Method{ID: f.Method(t, "MAIL").ID, Name: "SMS"}, code)
		storetest.Equal(t, s.Result(f).Is(t, 409, "CHALLENGE_NOT_COMPLETED").Header.Get("ot-auth"), "",
			"ot-auth after one factor")
		if s.answer(a, f, "MAIL").Is(t, 200, "").Header.Get("ot-auth") == "" {
			t.Error("no ot-auth after both")
		}
	}, nil},
}
