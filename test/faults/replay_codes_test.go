package faults

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Codes are valid once.
var replaysOfCodes = []replay{
	{"CVE-2025-6014", "Vault: a TOTP code was accepted again while it was valid", func(t *testing.T, s stage) {
		a, _, app := s.withApp()
		first, second, code := s.begin(a), s.begin(a), app.Next(t)
		s.Complete(first, first.Method(t, "TOTP"), code).Is(t, 200, "")
		s.refusesUsed(second, app, code)
	}, nil},
	{"CVE-2025-6015", "Vault: a used code with added spaces passed the checks of reuse and rate",
		func(t *testing.T, s stage) {
			a, _, app := s.withApp()
			first, second, code := s.begin(a), s.begin(a), app.Next(t)
			s.Complete(first, first.Method(t, "TOTP"), code).Is(t, 200, "")
			m, left := second.Method(t, "TOTP"), 5
			for _, spelled := range []string{" " + code, code + " ", code[:3] + " " + code[3:], "\t" + code, code + "  "} {
				left--
				storetest.Equal(t, blackbox.AttemptsLeft(t, s.Complete(second, m, spelled)), left, "attempts after", spelled)
			}
			s.Complete(second, m, app.Next(t)).Is(t, 423, "METHOD_LOCKED")
		}, nil},
	{"CVE-2025-43798", "Liferay: an observer of a TOTP code could log in with it after its owner",
		func(t *testing.T, s stage) {
			a, _, app := s.withApp()
			f, code := s.begin(a), app.Next(t)
			x := s.Complete(f, f.Method(t, "TOTP"), code).Is(t, 200, "").Header.Get("x-auth")
			s.Ask("POST", "/auth/logout", nil, blackbox.Headers{"x-auth": x}).Is(t, 200, "")
			f = s.at(t).begin(a) // from elsewhere
			s.refusesUsed(f, app, code)
		}, nil},
	{"CVE-2026-27855", "Dovecot: an answer to an OTP was cached and accepted again under another name of the user",
		func(t *testing.T, s stage) {
			a, _, app := s.withApp()
			f, code := s.begin(a), app.Next(t)
			s.Complete(f, f.Method(t, "TOTP"), code).Is(t, 200, "")
			byMail := blackbox.FlowOf(t, s.Ask("POST", "/auth/login", map[string]string{"email": " " + a.Mail,
				"password": a.Password}, nil))
			s.refusesUsed(byMail, app, code)
		}, nil},
	{"keycloak#13607", "Keycloak: a code used for a login was accepted for another action", func(t *testing.T, s stage) {
		a, me, app := s.withApp()
		f, code := s.begin(a), app.Next(t)
		s.Complete(f, f.Method(t, "TOTP"), code).Is(t, 200, "")
		out := blackbox.FlowOf(t, s.Ask("POST", "/auth/totp/deactivate", nil, me))
		s.refusesUsed(out, app, code)
	}, nil},
	{"better-auth#10387", "better-auth: a code was accepted again for each further check of one session",
		func(t *testing.T, s stage) {
			_, me, app := s.withApp()
			first, second, code := s.start("DURING_VIDEO_KYC", me), s.start("DURING_VIDEO_KYC", me), app.Next(t)
			s.Complete(first, first.Method(t, "TOTP"), code).Is(t, 200, "")
			s.refusesUsed(second, app, code)
		}, nil},
	{"better-auth#11259", "better-auth: a code sent many times concurrently opened many sessions",
		func(t *testing.T, s stage) {
			a, _, app := s.withApp()
			flows := []blackbox.Flow{s.begin(a), s.begin(a), s.begin(a), s.begin(a)}
			code := app.Next(t)
			got := blackbox.CountByCode(blackbox.Crowd(t, len(flows), func(i int) (blackbox.Answer, error) {
				return s.TryComplete(flows[i], methodOf(flows[i], "TOTP"), code)
			}))
			storetest.Same(t, got, map[string]int{"200": 1, "422OTP_INVALID": len(flows) - 1})
		}, nil},
	{"better-auth#10561", "better-auth: two concurrent setups left two authenticators", func(t *testing.T, s stage) {
		a, me := s.known()
		var flows [2]blackbox.Flow
		var codes [2]string
		for i := range flows {
			flows[i] = blackbox.FlowOf(t, s.Ask("POST", "/auth/totp/setup", nil, me))
			codes[i] = s.Code(t, a, "SMS")
		}
		secrets := map[bool]string{}
		for _, answered := range blackbox.Crowd(t, 2, func(i int) (blackbox.Answer, error) {
			return s.TryComplete(flows[i], methodOf(flows[i], "SMS"), codes[i])
		}) {
			var set blackbox.TOTPOutcome
			if answered.Status == 200 {
				storetest.Must(t, json.Unmarshal(answered.Body, &set))
			}
			secrets[set.ExecResult.Success] = set.ExecResult.Data.Base32
		}
		if len(secrets) != 2 || secrets[true] == "" || secrets[false] != "" {
			t.Fatalf("the two setups ended with %v", secrets)
		}
		storetest.Equal(t, s.s.Count("totp WHERE user_id = $1", a.ID), 1, "authenticators")
		f := s.begin(a)
		s.Complete(f, f.Method(t, "TOTP"), blackbox.NewAuthenticator(t, secrets[true]).Next(t)).Is(t, 200, "")
	}, nil},
	{"CVE-2026-28513", "Pocket ID: a code was refused only if it was both of another client and expired",
		func(t *testing.T, s stage) {
			a := s.user()
			mine, other := s.begin(a), s.begin(a)
			code := s.Code(t, a, "SMS") // of other; each of its bindings is checked separately
			s.Complete(mine, mine.Method(t, "SMS"), code).Is(t, 422, "OTP_INVALID")
			s.Complete(other, other.Method(t, "MAIL"), code).Is(t, 422, "OTP_INVALID")
			if got := s.Complete(mine, other.Method(t, "SMS"), code); got.Status < 400 || got.Status > 499 {
				t.Errorf("a method of another challenge: %s", got)
			}
			s.Complete(other, other.Method(t, "SMS"), code).Is(t, 200, "")
		}, nil},
	{"CVE-2025-46815", "ZITADEL: the answer of an identity provider could be redeemed again",
		func(t *testing.T, s stage) {
			a := s.user()
			f := s.begin(a)
			code := s.Code(t, a, "SMS")
			done := s.Complete(f, f.Method(t, "SMS"), code).Is(t, 200, "")
			// A repeat returns the same session, not a second one.
			blackbox.SameOutcome(t, done, s.Complete(f, f.Method(t, "SMS"), code))
			me := blackbox.Headers{"x-auth": done.Header.Get("x-auth")}
			storetest.Equal(t, s.s.Count("session WHERE user_id = $1", a.ID), 1, "sessions")
			s.Ask("POST", "/auth/logout", nil, me).Is(t, 200, "")
			for _, again := range []blackbox.Answer{s.Result(f), s.Complete(f, f.Method(t, "SMS"), code)} {
				storetest.Equal(t, again.Is(t, 409, "CHALLENGE_CLOSED").Header.Get("x-auth"), "", "token")
			}
		}, nil},
	{"keycloak#46732", "Keycloak: a single-use token was accepted for each of many concurrent requests",
		func(t *testing.T, s stage) {
			a := s.user()
			once, passwords := s.onceFor(a), []string{}
			for i := range 6 {
				passwords = append(passwords, "a-new-lantern-"+string(rune('a'+i)))
			}
			won := ""
			var mu sync.Mutex
			got := blackbox.CountByCode(blackbox.Crowd(t, len(passwords), func(i int) (blackbox.Answer, error) {
				answer, err := s.Try("POST", "/auth/password/update",
					map[string]string{"password": passwords[i], "passwordVerify": passwords[i]}, once)
				if err == nil && answer.Status == 200 {
					mu.Lock()
					defer mu.Unlock()
					won = passwords[i]
				}
				return answer, err
			}))
			if got["200"] != 1 || got["200"]+got["401TOKEN_REVOKED"]+got["503UNAVAILABLE"] != len(passwords) {
				t.Errorf("got %v, want one success", got)
			}
			a.Password = won
			s.begin(a)
		}, nil},
}

// methodOf is Method for goroutines.
func methodOf(f blackbox.Flow, name string) (found blackbox.Method) {
	for _, m := range f.MethodList {
		if m.Name == name {
			found = m
		}
	}
	return found
}

// Guesses are counted.
var replaysOfGuesses = []replay{
	{"CVE-2024-32868", "ZITADEL: second-factor codes could be guessed without limit", func(t *testing.T, s stage) {
		a := s.user()
		f := s.begin(a)
		s.wrong(a, f, "SMS", 5)
		s.answer(a, f, "SMS").Is(t, 423, "METHOD_LOCKED")
		s.answer(a, f, "MAIL").Is(t, 200, "") // its owner is not locked out
	}, nil},
	{"CVE-2025-64102", "ZITADEL: a new attempt at the API started with a count of zero", func(t *testing.T, s stage) {
		a := s.user()
		for range 2 {
			f := s.begin(a)
			s.wrong(a, f, "SMS", 5)
			s.wrong(a, f, "MAIL", 5)
		}
		f := s.begin(a)
		s.answer(a, f, "SMS").Is(t, 429, "RATE_LIMITED")
		s.Session(s.user())
	}, nil},
	{"CVE-2026-56450", "AIL: authenticator codes could be guessed without limit", func(t *testing.T, s stage) {
		a, me := s.known()
		app := s.app(a, me)
		f, code := s.begin(a), app.Next(t)
		for range 5 {
			s.Complete(f, f.Method(t, "TOTP"), blackbox.WrongFor(code)).Is(t, 422, "OTP_INVALID")
		}
		s.Complete(f, f.Method(t, "TOTP"), code).Is(t, 423, "METHOD_LOCKED")
		f = s.begin(a)
		s.Complete(f, f.Method(t, "TOTP"), code).Is(t, 200, "") // it was not used
	}, nil},
	{"CVE-2026-27801", "vaultwarden: wrong codes for a protected action were counted but not saved",
		func(t *testing.T, s stage) {
			a, me := s.known()
			verified := func() int { return s.s.Count("totp WHERE user_id = $1", a.ID) }
			f := blackbox.FlowOf(t, s.Ask("POST", "/auth/totp/setup", nil, me))
			s.wrong(a, f, "MAIL", 5)
			s.answer(a, f, "MAIL").Is(t, 423, "METHOD_LOCKED")
			s.Result(f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
			storetest.Equal(t, verified(), 0, "runs of the action")
			f = blackbox.FlowOf(t, s.Ask("POST", "/auth/totp/setup", nil, me))
			if s.answer(a, f, "MAIL").Is(t, 200, ""); verified() != 1 {
				t.Error("the action did not run")
			}
		}, nil},
	{"GHSA-c55g-q6f4-5qxr", "RubyGems: codes were counted only per address",
		func(t *testing.T, s stage) {
			a := s.user()
			for i := range 4 {
				f := s.begin(a)
				for range 5 {
					blackbox.From(t, s.Node, fmt.Sprintf("198.19.%d.%d", i, s.last.Add(1)%250+1)).
						Complete(f, f.Method(t, "SMS"), blackbox.WrongFor(s.Code(t, a, "SMS"))).Is(t, 422, "OTP_INVALID")
				}
			}
			there := s.at(t)
			f := there.begin(a)
			there.answer(a, f, "SMS").Is(t, 429, "RATE_LIMITED")
			there.Session(s.user())
		}, nil},
	{"keycloak#31726", "Keycloak: concurrent guesses were all verified before one was counted",
		func(t *testing.T, s stage) {
			a := s.user()
			f := s.begin(a)
			sms, code := f.Method(t, "SMS"), s.Code(t, a, "SMS")
			got := blackbox.CountByCode(blackbox.Crowd(t, 30, func(int) (blackbox.Answer, error) {
				return s.TryComplete(f, sms, blackbox.WrongFor(code))
			}))
			if got["422OTP_INVALID"] != 5 || got["423METHOD_LOCKED"] != 25 {
				t.Errorf("got %v, want 5 judged of 30", got)
			}
			s.Complete(f, sms, code).Is(t, 423, "METHOD_LOCKED")
			s.answer(a, f, "MAIL").Is(t, 200, "")
		}, nil},
	{"CVE-2025-6004", "Vault: a user name in another letter case was not locked out",
		func(t *testing.T, s stage) {
			a, other := s.user(), s.user()
			tries := func(mail, password string) blackbox.Answer {
				return s.Ask("POST", "/auth/login", map[string]string{"email": mail, "password": password}, nil)
			}
			for i := range 10 {
				tries([]string{a.Mail, strings.ToUpper(a.Mail), " " + a.Mail, strings.ToTitle(a.Mail[:1]) + a.Mail[1:],
					a.Mail + "\t"}[i%5], "not-the-password").Is(t, 401, "INVALID_CREDENTIALS")
			}
			for _, mail := range []string{a.Mail, strings.ToUpper(a.Mail[:2]) + a.Mail[2:]} {
				tries(mail, a.Password).Is(t, 429, "RATE_LIMITED")
			}
			s.begin(other)
			s.at(t).begin(a)
		}, nil},
	{"CVE-2025-24806", "Authelia: attempts by name and by mail address were counted separately",
		func(t *testing.T, s stage) {
			a := s.user()
			for i := range 10 {
				body := blackbox.LoginBody(a)
				if body["password"] = "not-the-password"; i%2 == 0 {
					body = map[string]string{"email": a.Mail, "password": "not-the-password"}
				}
				s.Ask("POST", "/auth/login", body, nil).Is(t, 401, "INVALID_CREDENTIALS")
			}
			s.Login(a).Is(t, 429, "RATE_LIMITED")
			s.Ask("POST", "/auth/login", map[string]string{"email": a.Mail, "password": a.Password}, nil).
				Is(t, 429, "RATE_LIMITED")
			s.at(t).begin(a)
		}, nil},
	{"CVE-2026-47203", "Authelia: at a second endpoint each spelling of a name had its own count",
		func(t *testing.T, s stage) {
			a, other := s.user(), s.user()
			start := func(country, phone string) blackbox.Answer {
				return s.Ask("POST", "/auth/password/reset", map[string]string{"countryCode": country, "phoneNumber": phone}, nil)
			}
			for i := range 5 {
				start([]string{"90", "+90", "0090"}[i%3], []string{a.Phone, "0" + a.Phone, a.Phone[:3] + " " + a.Phone[3:]}[i%3]).
					Is(t, 200, "")
			}
			for _, country := range []string{"90", "+90", "0090"} {
				start(country, a.Phone).Is(t, 429, "RATE_LIMITED")
			}
			start("90", other.Phone).Is(t, 200, "")
		}, nil},
	{"CVE-2026-43914", "vaultwarden: another endpoint verified passwords without counting",
		func(t *testing.T, s stage) {
			a, me := s.known()
			change := func(old string) blackbox.Answer {
				return s.Ask("POST", "/auth/password", map[string]string{"oldPassword": old, "password": "a-third-lantern",
					"passwordVerify": "a-third-lantern"}, me)
			}
			blackbox.FlowOf(t, change(a.Password))
			for range 5 {
				change("not-the-password").Is(t, 422, "PASSWORD_WRONG")
			}
			change(a.Password).Is(t, 429, "RATE_LIMITED")
			f := s.begin(a)
			s.Ask("POST", blackbox.RenewPath, map[string]string{"methodId": f.Method(t, "SMS").ID, "method": "SMS"}, nil).
				Is(t, 401, "UNAUTHENTICATED") // a code is sent only after the password was proved
		}, nil},
	{"GHSA-cq42-vhv7-xr7p", "Keycloak: a stranger could lock any user out", func(t *testing.T, s stage) {
		a, me := s.known()
		stranger := s.at(t)
		f := stranger.reset(a)
		for range 5 {
			stranger.Complete(f, f.Method(t, "SMS"), blackbox.WrongFor(s.Code(t, a, "SMS"))).Is(t, 422, "OTP_INVALID")
		}
		for range 10 {
			stranger.Login(blackbox.Account{Country: a.Country, Phone: a.Phone, Password: "not-the-password"}).
				Is(t, 401, "INVALID_CREDENTIALS")
		}
		stranger.Login(a).Is(t, 429, "RATE_LIMITED") // from elsewhere
		s.Session(a)                                 // not from here
		s.answer(a, s.start("VERIFY_EMAIL", me), "MAIL").Is(t, 200, "")
	}, nil},
}
