package faults

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

// Sessions start and end.
var replaysOfSessions = []replay{
	{"CVE-2024-28197", "ZITADEL: a session started by an attacker became the session of the victim",
		func(t *testing.T, s stage) {
			attacker, theirs := s.known()
			a := s.user()
			sid := blackbox.ClaimsOf(t, theirs["x-auth"])["sid"].(string)
			body := map[string]any{"countryCode": a.Country, "phoneNumber": a.Phone, "password": a.Password,
				"sessionId": sid, "sid": sid, "sessionKey": sid}
			planted := blackbox.Headers{"Cookie": "x-auth=" + theirs["x-auth"] + "; sid=" + sid, "x-auth": theirs["x-auth"]}
			f := blackbox.FlowOf(t, s.Ask("POST", "/auth/login", body, planted))
			done := s.answer(a, f, "SMS").Is(t, 200, "")
			got := blackbox.ClaimsOf(t, done.Header.Get("x-auth"))
			if got["sid"] == sid || got["sub"] != a.ID {
				t.Errorf("the session %v of %v", got["sid"], got["sub"])
			}
			s.s.Has(1, "session WHERE id = $1 AND user_id = $2", sid, attacker.ID)
			s.sessions(blackbox.Headers{"Cookie": "x-auth=" + done.Header.Get("x-auth")}).Is(t, 401, "UNAUTHENTICATED")
		}, nil},
	{"CVE-2024-38513", "Fiber: a session used the id that the client sent",
		func(t *testing.T, s stage) {
			a := s.user()
			const chosen = "01JCHOSEN00000000000000000"
			body := map[string]any{"countryCode": a.Country, "phoneNumber": a.Phone, "password": a.Password,
				"challengeId": chosen, "id": chosen, "session_id": chosen}
			f := blackbox.FlowOf(t, s.Ask("POST", "/auth/login", body,
				blackbox.Headers{"Cookie": "session_id=" + chosen, "X-Request-Id": chosen, "session_id": chosen}))
			x := s.answer(a, f, "SMS").Is(t, 200, "").Header.Get("x-auth")
			if f.ChallengeID == chosen || blackbox.ClaimsOf(t, x)["sid"] == chosen || strings.Contains(x, chosen) {
				t.Errorf("the id is the client's: %s, %v", f.ChallengeID, blackbox.ClaimsOf(t, x))
			}
			s.open(blackbox.Headers{"x-auth": x})
		}, nil},
	{"CVE-2026-9802", "Keycloak: a revoked token was accepted again after a restart",
		func(t *testing.T, s stage) {
			a, gone := s.known()
			stays := s.Session(a)
			f := s.reset(a)
			s.wrong(a, f, "SMS", 5)
			code := s.Code(t, a, "SMS")
			s.Ask("POST", "/auth/logout", nil, gone).Is(t, 200, "")
			s.Kill()
			s.Node = s.s.Start()
			s.ended(gone)
			s.open(stays)
			s.Complete(f, f.Method(t, "SMS"), code).Is(t, 423, "METHOD_LOCKED")
		}, []string{}},
	{"CVE-2025-64708", "authentik: expired tokens were accepted until a clean-up", func(t *testing.T, s stage) {
		a := s.user()
		me := s.Session(a)
		once := s.onceFor(a)
		blackbox.Tune(t, s.Node, s.boss, "SMS", 1_000, 0)
		f := s.begin(a)
		rows := s.s.Count("challenge WHERE id = $1", f.ChallengeID) + s.s.Count("session WHERE user_id = $1", a.ID)
		time.Sleep(1100 * time.Millisecond) // the service uses the clock of the machine
		s.answer(a, f, "SMS").Is(t, 410, "METHOD_EXPIRED")
		s.answer(a, f, "MAIL").Is(t, 200, "")
		expired := func(what, want string, ask func() blackbox.Answer) {
			blackbox.Until(t, blackbox.Within(20), what, func() bool { return ask().Code() == want })
		}
		expired("the ot-auth is late", "TOKEN_EXPIRED", func() blackbox.Answer { return s.update("short", once) })
		expired("the x-auth is late", "TOKEN_EXPIRED", func() blackbox.Answer { return s.sessions(me) })
		if s.s.Count("challenge WHERE id = $1", f.ChallengeID)+s.s.Count("session WHERE user_id = $1", a.ID) <= rows {
			t.Error("the rows are gone: this shows nothing")
		}
	}, []string{"TOKENS_X_AUTH_TTL=6s", "TOKENS_OT_AUTH_TTL=6s"}},
	{"CVE-2023-47798", "Liferay: the sessions of an account stayed valid after it was locked",
		func(t *testing.T, s stage) {
			a, me := s.known()
			second := s.Session(a)
			s.open(me)
			s.standing(a, "passive")
			s.ended(me)
			s.ended(second)
			s.standing(a, "active")
			s.ended(me) // and do not return
			s.Session(a)
		}, nil},
	{"CVE-2025-53942", "authentik: a deactivated user could log in by another method", func(t *testing.T, s stage) {
		a, me := s.known()
		p, once := s.phone(a, me), s.onceFor(a)
		f, g := s.begin(a), s.reset(a)
		codes := map[string]blackbox.Flow{s.Code(t, a, "SMS"): g}
		s.standing(a, "passive")
		s.Login(a).Is(t, 401, "INVALID_CREDENTIALS")
		for code, g := range codes {
			s.Complete(g, g.Method(t, "SMS"), code).Is(t, 409, "CHALLENGE_CLOSED")
		}
		p.Answer(t, f, "APPROVED").Is(t, 409, "CHALLENGE_CLOSED")
		storetest.Equal(t, s.update("a-new-lantern", once).Status, 401, "a reset of before")
		letters := len(s.Letters(t, a.Number()))
		s.reset(a) // gets the usual answer, sends nothing
		storetest.Equal(t, len(s.Letters(t, a.Number())), letters, "letters to an account that is closed")
		s.standing(a, "active")
		s.Session(a)
	}, nil},
	{"GHSA-x883-2vmg-xwf7", "Authelia: a change of an account took effect late", func(t *testing.T, s stage) {
		a, me := s.known()
		second := s.Session(a)
		s.update("a-new-lantern", s.onceFor(a)).Is(t, 200, "")
		s.ended(me) // at the next request
		s.ended(second)
		s.Login(a).Is(t, 401, "INVALID_CREDENTIALS")
		a.Password = "a-new-lantern"
		s.Session(a)
	}, nil},
	{"CVE-2024-46999", "ZITADEL: a revoked permission was in tokens issued afterwards",
		func(t *testing.T, s stage) {
			a, me := s.known()
			membership := map[string]string{"userId": a.ID, "roleCode": "admin"}
			s.Ask("GET", blackbox.RulesPath, nil, me).Is(t, 403, "FORBIDDEN")
			s.Ask("POST", "/admin/user-roles", membership, s.boss).Is(t, 200, "")
			s.Ask("GET", blackbox.RulesPath, nil, me).Is(t, 200, "")
			s.Ask("DELETE", "/admin/user-roles", membership, s.boss).Is(t, 200, "")
			s.Ask("GET", blackbox.RulesPath, nil, me).Is(t, 403, "FORBIDDEN")
			s.Ask("GET", blackbox.RulesPath, nil, s.Session(a)).Is(t, 403, "FORBIDDEN")
			s.open(me)
		}, nil},
	{"CVE-2024-47000", "ZITADEL: the keys of a deactivated service account stayed valid",
		func(t *testing.T, s stage) {
			key := func(args ...string) string {
				got := s.s.Succeeds("", append([]string{"cron-key"}, args...)...)
				return strings.TrimSpace(got.Out)
			}
			const job = "/rates/get-currency-rates?baseCurrency=USD&quoteCurrency=TRY"
			bad := s.Ask("GET", job, nil, blackbox.Headers{"cron-auth": "replay.x"}).Is(t, 401, "UNAUTHENTICATED")
			h := blackbox.Headers{"cron-auth": key("add", "replay")}
			knows := func() bool { return s.Ask("GET", job, nil, h).Status != bad.Status }
			blackbox.Until(t, blackbox.Within(5), "the key is accepted", knows)
			key("remove", "replay")
			blackbox.Until(t, blackbox.Within(5), "the key is refused", func() bool { return !knows() })
		}, nil},
	{"CVE-2024-45042", "Kratos: a session without a second factor changed settings that require one",
		func(t *testing.T, s stage) {
			a, me := s.known()
			app := s.app(a, me)
			f := s.begin(a)
			code := s.Code(t, a, "SMS")
			out := blackbox.FlowOf(t, s.Ask("POST", "/auth/totp/deactivate", nil, me))
			login := f
			login.MethodList = out.MethodList // the login's token, the other challenge's methods
			storetest.Equal(t, s.Complete(login, out.Method(t, "SMS"), s.Code(t, a, "SMS")).Status/100, 4,
				"token of another challenge")
			s.Complete(f, f.Method(t, "SMS"), code).Is(t, 200, "") // a session, and nothing else
			s.s.Has(1, "totp WHERE user_id = $1", a.ID)
			s.Complete(out, out.Method(t, "TOTP"), app.Next(t)).Is(t, 200, "")
			s.s.Has(0, "totp WHERE user_id = $1", a.ID)
		}, nil},
	{"CVE-2026-44460", "FileRise: with the password alone, the setup revealed the secret of the existing authenticator",
		func(t *testing.T, s stage) {
			a, me := s.known()
			s.app(a, me)
			f := s.begin(a)
			for _, h := range []blackbox.Headers{nil, {"p-auth": f.PAuth}, {"x-auth": f.PAuth}} {
				s.Ask("POST", "/auth/totp/setup", nil, h).Is(t, 401, "UNAUTHENTICATED")
				s.Ask("POST", "/auth/totp/recover", map[string]string{"recoveryCode": "x"}, h).Is(t, 401, "UNAUTHENTICATED")
			}
			s.Ask("POST", "/auth/totp/setup", nil, me).Is(t, 409, "TOTP_ALREADY_DEFINED")
			s.Ask("POST", "/auth/totp/recover", map[string]string{"recoveryCode": "ABCD-EFGH"}, me).
				Is(t, 422, "RECOVERY_CODE_INVALID")
		}, nil},
}

// Browsers that were remembered.
var replaysOfRemembered = []replay{
	{"vaultwarden#7682", "vaultwarden: a browser stayed remembered after a new password",
		func(t *testing.T, s stage) {
			s.remembers()
			a := s.user()
			k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
			s.remember(k, a)
			x := s.loginBy(k, a).Header.Get("x-auth")
			if x == "" {
				t.Fatal("not remembered")
			}
			f := blackbox.FlowOf(t, s.Ask("POST", "/auth/password", map[string]string{"oldPassword": a.Password,
				"password": "lantern-orchard-9", "passwordVerify": "lantern-orchard-9"}, blackbox.Headers{"x-auth": x}))
			s.answer(a, f, "SMS").Is(t, 200, "")
			a.Password = "lantern-orchard-9"
			if got := s.loginBy(k, a); got.Header.Get("x-auth") != "" || blackbox.FlowOf(t, got).Status != "PENDING" {
				t.Errorf("%s", got)
			}
		}, nil},
	{"authy-devise#58", "authy-devise: a browser remembered for one account served any other",
		func(t *testing.T, s stage) {
			s.remembers()
			attacker, victim := s.user(), s.user()
			k := &blackbox.Keyed{Key: blackbox.ECKey(t)}
			s.remember(k, attacker)
			if s.loginBy(k, attacker).Header.Get("x-auth") == "" {
				t.Fatal("not remembered")
			}
			if got := s.loginBy(k, victim); got.Header.Get("x-auth") != "" || blackbox.FlowOf(t, got).Status != "PENDING" {
				t.Errorf("%s", got)
			}
		}, nil},
}

// remembers has browsers remembered for LOGIN, whose policy is otherwise the built-in default.
func (st stage) remembers() {
	st.T.Helper()
	const methods = `[["TOTP"],["PUSH"],["SMS"],["MAIL"]]`
	got := st.Ask("POST", "/admin/system/mfa/policies/common",
		`{"actionCode":"LOGIN","name":"n","expireAt":0,"required":1,"methods":`+methods+`,"remember":30}`, st.boss)
	if got.Status != 200 {
		got.Is(st.T, 409, "RECORD_ALREADY_EXIST")
	}
}

// loginBy starts a login with a proof of a key.
func (st stage) loginBy(k *blackbox.Keyed, a blackbox.Account) blackbox.Answer {
	st.T.Helper()
	k.Token = ""
	return st.Ask("POST", "/auth/login", blackbox.LoginBody(a), k.Proof(st.T, st.Node, "POST", "/auth/login"))
}

// remember logs in with a key and has the browser remembered.
func (st stage) remember(k *blackbox.Keyed, a blackbox.Account) {
	st.T.Helper()
	f := blackbox.FlowOf(st.T, st.loginBy(k, a))
	m := f.Method(st.T, "SMS")
	st.Ask("POST", blackbox.CompletePath, map[string]any{"methodId": m.ID, "method": m.Name,
		"value": st.Code(st.T, a, "SMS"), "remember": true}, blackbox.Headers{"p-auth": f.PAuth}).Is(st.T, 200, "")
}

// keyed is a new account with a session that is bound to a key.
func (st stage) keyed() (blackbox.Account, *blackbox.Keyed) {
	st.T.Helper()
	a, k := st.user(), &blackbox.Keyed{Key: blackbox.ECKey(st.T)}
	k.Login(st.T, st.Node, a)
	return a, k
}

// Proofs of session keys (RFC 9449).
var replaysOfKeys = []replay{
	{"keycloak#36475", "Keycloak: a token bound to a key was refreshed without a proof", func(t *testing.T, s stage) {
		_, k := s.keyed()
		s.Do(t, "POST", blackbox.RenewSessionPath, nil, blackbox.Headers{"x-auth": k.Token}).Is(t, 401, "DPOP_INVALID")
		k.Renew(t, s.Node).Is(t, 200, "")
	}, nil},
	{"keycloak#38333", "Keycloak: a proof by any key, without the token's hash, was accepted",
		func(t *testing.T, s stage) {
			_, k := s.keyed()
			thief := &blackbox.Keyed{Key: blackbox.EdKey(t), Token: k.Token}
			none := func(c *dpop.Claims) { c.TokenHash = "" }
			thief.Renew(t, s.Node).Is(t, 401, "DPOP_INVALID")
			thief.Renew(t, s.Node, none).Is(t, 401, "DPOP_INVALID")
			k.Renew(t, s.Node, none).Is(t, 401, "DPOP_INVALID")
			k.Renew(t, s.Node).Is(t, 200, "")
		}, nil},
	{"product-is#23358", "WSO2: a proof was accepted twice, because its jti was forgotten",
		func(t *testing.T, s stage) {
			_, k := s.keyed()
			h := k.Proof(t, s.Node, "POST", blackbox.RenewSessionPath)
			s.Do(t, "POST", blackbox.RenewSessionPath, nil, h).Is(t, 200, "")
			s.Do(t, "POST", blackbox.RenewSessionPath, nil, h).Is(t, 401, "DPOP_INVALID")
		}, nil},
	{"attesto#18", "attesto: a proof of another key with the same jti used up the victim's", func(t *testing.T, s stage) {
		_, k := s.keyed()
		_, attacker := s.keyed()
		same := func(c *dpop.Claims) { c.ID = "the-same-jti" }
		attacker.Renew(t, s.Node, same).Is(t, 200, "")
		k.Renew(t, s.Node, same).Is(t, 200, "")
	}, nil},
	{"keycloak#50306", "Keycloak: the logout refused the proof of a bound token",
		func(t *testing.T, s stage) {
			_, k := s.keyed()
			s.Do(t, "POST", "/auth/logout", nil, k.Proof(t, s.Node, "POST", "/auth/logout")).Is(t, 200, "")
			k.Renew(t, s.Node).Is(t, 401, "TOKEN_REVOKED")
		}, nil},
}
