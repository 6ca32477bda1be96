package faults

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

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
