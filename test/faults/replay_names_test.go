package faults

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// No answer reveals which accounts exist.
var replaysOfNames = []replay{
	{"CVE-2026-23511", "ZITADEL: the login revealed which names exist", func(t *testing.T, s stage) {
		a, nobody := s.user(), blackbox.NewAccount(90_001)
		wrong := a
		wrong.Password, nobody.Password = "not-the-password", "not-the-password"
		known, unknown := s.Login(wrong).Is(t, 401, "INVALID_CREDENTIALS"), s.Login(nobody)
		storetest.Equal(t, blackbox.Alike(known), blackbox.Alike(unknown))
		s.begin(a)
	}, nil},
	{"CVE-2024-41952", "ZITADEL: with hiding of names enabled, a later step still revealed which names exist",
		func(t *testing.T, s stage) {
			a, nobody := s.user(), blackbox.NewAccount(90_002)
			known, unknown := s.reset(a), s.reset(nobody)
			if len(known.MethodList) != len(unknown.MethodList) || known.Expire != unknown.Expire ||
				known.Status != unknown.Status || len(known.ChallengeID) != len(unknown.ChallengeID) {
				t.Errorf("known: %+v, unknown: %+v", known, unknown)
			}
			for i, m := range known.MethodList {
				u := unknown.MethodList[i]
				if m.Name != u.Name || m.Expire != u.Expire || m.RenewStart != u.RenewStart || len(m.Hint) != len(u.Hint) {
					t.Errorf("known: %+v, unknown: %+v", m, u)
				}
			}
			if len(s.Letters(t, nobody.Number())) != 0 || s.Code(t, a, "SMS") == "" {
				t.Error("letters to the unknown phone, or none to the account")
			}
		}, nil},
	{"CVE-2026-4633", "Keycloak: a later step of the login had a different error for names that do not exist",
		func(t *testing.T, s stage) {
			a, nobody := s.user(), blackbox.NewAccount(90_003)
			known, unknown := s.reset(a), s.reset(nobody)
			ask := func(f blackbox.Flow, step int) blackbox.Answer {
				sms := f.Method(t, "SMS")
				switch step {
				case 0:
					return s.Result(f)
				case 1:
					return s.Ask("POST", blackbox.RenewPath, map[string]string{"methodId": sms.ID, "method": "SMS"},
						blackbox.Headers{"p-auth": f.PAuth})
				}
				return s.Complete(f, sms, []string{"000000", "a123459"}[step%2]) // the second is no code, and no attempt
			}
			for step := range 14 {
				k, u := ask(known, step), ask(unknown, step)
				k.Header.Del("Retry-After") // a time, which passes
				u.Header.Del("Retry-After")
				if blackbox.Alike(k) != blackbox.Alike(u) || k.Status < 400 {
					t.Errorf("step %d: known %s, unknown %s", step, k, u)
				}
			}
			s.Complete(known, known.Method(t, "SMS"), s.Code(t, a, "SMS")).Is(t, 423, "METHOD_LOCKED")
			s.answer(a, known, "MAIL").Is(t, 200, "")
		}, nil},
	{"CVE-2023-3462", "Vault: only names that exist could be locked out", func(t *testing.T, s stage) {
		a, nobody := s.user(), blackbox.NewAccount(90_004)
		wrong := a
		wrong.Password, nobody.Password = "not-the-password", "not-the-password"
		for i := range 12 {
			known, unknown := s.Login(wrong), s.Login(nobody)
			if want := 401 + 28*(i/10); known.Status != want || known.Code() != unknown.Code() ||
				known.Problem().Detail != unknown.Problem().Detail || (want == 429) != (unknown.Header.Get("Retry-After") != "") {
				t.Errorf("try %d: known %s, unknown %s", i+1, known, unknown)
			}
		}
		s.at(t).begin(a)
	}, nil},
	{"CVE-2020-35177", "Vault: the text of an error revealed why a name was refused", func(t *testing.T, s stage) {
		a, nobody := s.user(), blackbox.NewAccount(90_005)
		nobody.Password = a.Password
		s.begin(a)
		s.standing(a, "passive")
		if closed, unknown := s.Login(a).Is(t, 401, "INVALID_CREDENTIALS"),
			s.Login(nobody); blackbox.Alike(closed) != blackbox.Alike(unknown) {
			t.Errorf("closed: %s, unknown: %s", closed, unknown)
		}
	}, nil},
	{"CVE-2025-64101", "ZITADEL: the mail of a password reset contained a host chosen by the client",
		func(t *testing.T, s stage) {
			a := s.user()
			const evil = "evil.example.test"
			for _, h := range []blackbox.Headers{{"X-Forwarded-Host": evil}, {"Forwarded": "host=" + evil + ";proto=http"},
				{"Host": evil}, {"X-Original-Host": evil, "X-Host": evil}} {
				s.Ask("POST", "/auth/password/reset", map[string]string{"email": a.Mail, "countryCode": a.Country,
					"phoneNumber": a.Phone}, h).Is(t, 200, "")
			}
			letters := append(s.Letters(t, a.Mail), s.Letters(t, a.Number())...)
			for _, l := range letters {
				if strings.Contains(l.Subject+l.Body, evil) || l.Code == "" {
					t.Errorf("the letter %+v", l)
				}
			}
			storetest.Equal(t, len(letters), 8, "letters")
		}, nil},
	{"GHSA-3529-5m8x-rpv3", "supabase/auth: links used the host and the scheme chosen by the client",
		func(t *testing.T, s stage) {
			const evil = "evil.example.test"
			h := blackbox.Headers{"x-auth": s.boss["x-auth"], "Host": evil, "X-Forwarded-Host": evil,
				"X-Forwarded-Proto": "javascript"}
			got := string(s.Ask("GET", "/admin/get-country-list", nil, h).Is(t, 200, "").Body)
			if strings.Contains(got, evil) || strings.Contains(got, "javascript:") || !strings.Contains(got,
				s.URL+"/flags/TR.svg") {
				t.Errorf("the links are %.300s", got)
			}
			got = string(s.Ask("POST", "/admin/cdn/upload", map[string]any{"imageData": blackbox.OnePixel, "imageName": "h.png",
				"folderType": "logo", "useSuffix": true}, h).Is(t, 200, "").Body)
			if strings.Contains(got, evil) || !strings.Contains(got, s.URL+"/cdn/") {
				t.Errorf("the link is %s", got)
			}
		}, nil},
}
