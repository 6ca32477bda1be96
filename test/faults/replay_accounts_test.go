package faults

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Records of accounts.
var replaysOfAccounts = []replay{
	{"CVE-2025-67717", "ZITADEL: any user could read the number of users", func(t *testing.T, s stage) {
		_, me := s.known()
		for _, path := range []string{"/admin/list-users", "/user/total-count-by-status", "/admin/get-active-users",
			"/admin/get-user-counts-by-register-date", "/admin/get-count-of-users-by-level",
			"/user/last-month-user-count-day-by-day"} {
			got := s.Ask("GET", path, nil, me).Is(t, 403, "FORBIDDEN")
			storetest.Equal(t, got.Header.Get("Link")+got.Header.Get("X-Total-Count"), "", path)
		}
		s.Ask("GET", "/user/total-count-by-status", nil, s.boss).Is(t, 200, "")
	}, nil},
	{"CVE-2025-27507", "ZITADEL: a caller who knew their number could change settings of others",
		func(t *testing.T, s stage) {
			const trx = "TAzaZg1EuULzZTuJtJdrBdbSjCp5AbZEVP"
			_, mine := s.known()
			_, theirs := s.known()
			var added struct{ Data struct{ ID string } }
			s.Ask("POST", blackbox.AddressesPath, blackbox.AddressBody("USDT", "TRX", trx, "Mine"), mine).Is(t, 200, "").Read(t,
				&added)
			change := func(method string, me blackbox.Headers, id string) blackbox.Answer {
				return s.Ask(method, blackbox.AddressesPath, map[string]string{"id": id, "name": "Changed"}, me)
			}
			for _, method := range []string{"PATCH", "DELETE"} {
				unknown := change(method, theirs, "987654321").Is(t, 404, "RECORD_NOT_FOUND")
				if got := change(method, theirs, added.Data.ID); blackbox.Alike(got) != blackbox.Alike(unknown) {
					t.Errorf("%s of another's: %s, of a missing one: %s", method, got, unknown)
				}
			}
			if got := string(s.Ask("GET", blackbox.AddressesPath, nil, mine).Body); !strings.Contains(got, `"Mine"`) {
				t.Errorf("the owner's: %s", got)
			}
			change("PATCH", mine, added.Data.ID).Is(t, 200, "")
		}, nil},
	{"CVE-2025-64431", "ZITADEL: a request with another owner's id read and wrote that owner's data",
		func(t *testing.T, s stage) {
			a, mine := s.known()
			b, theirs := s.known()
			s.Ask("GET", "/user/get-documents?userId="+a.ID, nil, mine).Is(t, 200, "")
			for _, path := range []string{"/user/get-documents", "/user/get-kyc-images"} {
				unknown := s.Ask("GET", path+"?userId=01JNOBODY00000000000000000", nil, theirs)
				got := s.Ask("GET", path+"?userId="+a.ID, nil, theirs)
				if got.Status != 403 || blackbox.Alike(got) != blackbox.Alike(unknown) {
					t.Errorf("%s of another: %s, of a missing one: %s", path, got, unknown)
				}
			}
			s.Ask("POST", "/document/upload-document", map[string]any{"base64Data": blackbox.OnePixel, "fileName": "a.png",
				"description": "d", "userId": a.ID}, theirs).Is(t, 200, "")
			if s.s.Count("document WHERE user_id = $1", a.ID) != 0 || s.s.Count("document WHERE user_id = $1", b.ID) != 1 {
				t.Error("the document is another's")
			}
		}, nil},
	{"CVE-2026-4630", "Keycloak: a caller who knew the id of another's resource could read, change and delete it",
		func(t *testing.T, s stage) {
			a, mine := s.known()
			_, theirs := s.known()
			p := s.phone(a, mine)
			sid := blackbox.ClaimsOf(t, mine["x-auth"])["sid"].(string)
			for path, body := range map[string]map[string]string{
				blackbox.SessionsPath: {"sessionId": sid}, blackbox.DevicesPath: {"deviceId": p.ID}} {
				unknown := map[string]string{}
				for name := range body {
					unknown[name] = "01JNOBODY00000000000000000"
				}
				want := s.Ask("DELETE", path, unknown, theirs).Is(t, 404, "RECORD_NOT_FOUND")
				if got := s.Ask("DELETE", path, body, theirs); blackbox.Alike(got) != blackbox.Alike(want) {
					t.Errorf("another's at %s: %s, a missing one: %s", path, got, want)
				}
			}
			f := s.begin(a)
			p.Answer(t, f, "APPROVED").Is(t, 200, "")
			s.Ask("DELETE", blackbox.SessionsPath, map[string]string{"sessionId": sid}, mine).Is(t, 200, "")
			s.ended(mine)
		}, nil},
	{"CVE-2026-27946", "ZITADEL: users could mark their own address as verified", func(t *testing.T, s stage) {
		a, me := s.known()
		verified := func() bool { return s.s.Count("users WHERE id = $1 AND email_verified", a.ID) == 1 }
		fresh := map[string]any{"userId": a.ID, "mailAddress": "new-" + a.Mail, "emailVerified": true, "isVerified": true,
			"verified": true, "email": map[string]any{"isVerified": true}}
		s.Ask("POST", blackbox.MailPath, fresh, me).Is(t, 403, "FORBIDDEN")
		s.Ask("POST", blackbox.MailPath, fresh, s.boss).Is(t, 200, "")
		if a.Mail = "new-" + a.Mail; verified() {
			t.Fatal("an address is verified because a request says so")
		}
		me = s.Session(a)
		f := blackbox.FlowOf(t, s.Ask("POST", blackbox.StartPath, map[string]any{"actionCode": "VERIFY_EMAIL",
			"emailVerified": true,
			"value":         "000000"}, me))
		if s.wrong(a, f, "MAIL", 1); verified() {
			t.Fatal("a wrong code verified the address")
		}
		if s.answer(a, f, "MAIL").Is(t, 200, ""); !verified() {
			t.Error("the right code did not verify it")
		}
	}, nil},
	{"CVE-2026-9087", "Keycloak: the proof of one identity was used up for another", func(t *testing.T, s stage) {
		a, me := s.known()
		f := s.start("VERIFY_EMAIL", me)
		code := s.Code(t, a, "MAIL")
		s.Ask("POST", blackbox.MailPath, map[string]any{"userId": a.ID, "mailAddress": "new-" + a.Mail}, s.boss).
			Is(t, 200, "")
		s.Complete(f, f.Method(t, "MAIL"), code).Is(t, 409, "CHALLENGE_CLOSED")
		s.s.Has(0, "users WHERE id = $1 AND email_verified", a.ID) // by the code of another address
		a.Mail = "new-" + a.Mail
		s.answer(a, s.start("VERIFY_EMAIL", s.Session(a)), "MAIL").Is(t, 200, "")
		s.s.Has(1, "users WHERE id = $1 AND email_verified", a.ID)
	}, nil},
	{"CVE-2026-40574", "oauth2-proxy: of an address with two @ one reader used the last part, another the first",
		func(t *testing.T, s stage) {
			a := s.user()
			for _, mail := range []string{"me@evil.test@demo.test", "me@evil.test@" + strings.SplitN(a.Mail, "@", 2)[1],
				`"me@evil.test"@demo.test`, "me@demo.test, me@evil.test", "<me@demo.test>", "me@", "@demo.test", "me@@demo.test"} {
				s.Ask("POST", blackbox.MailPath, map[string]any{"userId": a.ID, "mailAddress": mail}, s.boss).Is(t, 400,
					"INVALID_FIELD")
				if got := s.Ask("POST", "/auth/login", map[string]string{"email": mail, "password": a.Password}, nil); got.
					Status != 400 && got.Status != 401 {
					t.Errorf("a login of %s: %s", mail, got)
				}
			}
			s.Ask("POST", blackbox.MailPath, map[string]any{"userId": a.ID,
				"mailAddress": "me+1@demo.test." + s.s.Kind + ".test"}, s.boss).
				Is(t, 200, "")
		}, nil},
}
