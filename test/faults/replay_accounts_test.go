package faults

import (
	"fmt"
	"net/url"
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
			added := s.Ask("POST", blackbox.AddressesPath, blackbox.AddressBody("USDT", "TRX", trx, "Mine"), mine).
				Is(t, 200, "").At(t, "data", "id")
			change := func(method string, me blackbox.Headers, id string) blackbox.Answer {
				return s.Ask(method, blackbox.AddressesPath, map[string]string{"id": id, "name": "Changed"}, me)
			}
			for _, method := range []string{"PATCH", "DELETE"} {
				unknown := change(method, theirs, "987654321").Is(t, 404, "RECORD_NOT_FOUND")
				if got := change(method, theirs, added); blackbox.Alike(got) != blackbox.Alike(unknown) {
					t.Errorf("%s of another's: %s, of a missing one: %s", method, got, unknown)
				}
			}
			storetest.Contains(t, string(s.Ask("GET", blackbox.AddressesPath, nil, mine).Body), `"Mine"`, "the owner's")
			change("PATCH", mine, added).Is(t, 200, "")
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

// No answer reveals which accounts exist.
var replaysOfNames = []replay{
	{"CVE-2026-23511", "ZITADEL: the login revealed which names exist", func(t *testing.T, s stage) {
		a, absent := s.user(), blackbox.NewAccount(90_001)
		wrong := a
		wrong.Password, absent.Password = "not-the-password", "not-the-password"
		known, unknown := s.Login(wrong).Is(t, 401, "INVALID_CREDENTIALS"), s.Login(absent)
		storetest.Equal(t, blackbox.Alike(known), blackbox.Alike(unknown))
		s.begin(a)
	}, nil},
	{"CVE-2024-41952", "ZITADEL: with hiding of names enabled, a later step still revealed which names exist",
		func(t *testing.T, s stage) {
			a, absent := s.user(), blackbox.NewAccount(90_002)
			known, unknown := s.reset(a), s.reset(absent)
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
			if len(s.Letters(t, absent.Number())) != 0 || s.Code(t, a, "SMS") == "" {
				t.Error("letters to the unknown phone, or none to the account")
			}
		}, nil},
	{"CVE-2026-4633", "Keycloak: a later step of the login had a different error for names that do not exist",
		func(t *testing.T, s stage) {
			a, absent := s.user(), blackbox.NewAccount(90_003)
			known, unknown := s.reset(a), s.reset(absent)
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
		a, absent := s.user(), blackbox.NewAccount(90_004)
		wrong := a
		wrong.Password, absent.Password = "not-the-password", "not-the-password"
		for i := range 12 {
			known, unknown := s.Login(wrong), s.Login(absent)
			if want := 401 + 28*(i/10); known.Status != want || known.Code() != unknown.Code() ||
				known.Problem().Detail != unknown.Problem().Detail || (want == 429) != (unknown.Header.Get("Retry-After") != "") {
				t.Errorf("try %d: known %s, unknown %s", i+1, known, unknown)
			}
		}
		s.at(t).begin(a)
	}, nil},
	{"CVE-2020-35177", "Vault: the text of an error revealed why a name was refused", func(t *testing.T, s stage) {
		a, absent := s.user(), blackbox.NewAccount(90_005)
		absent.Password = a.Password
		s.begin(a)
		s.standing(a, "passive")
		if closed, unknown := s.Login(a).Is(t, 401, "INVALID_CREDENTIALS"),
			s.Login(absent); blackbox.Alike(closed) != blackbox.Alike(unknown) {
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

// Records and lists.
var replaysOfRecords = []replay{
	{"CVE-2026-33503", "Kratos: a forged page token was inserted into ORDER BY", func(t *testing.T, s stage) {
		users := s.s.Count("users")
		for _, odd := range []string{"'", "' OR 1=1 --", "1); DROP TABLE users; --", "id DESC; SELECT pg_sleep(9)",
			"-1", "0x1",
			blackbox.B64.EncodeToString([]byte(`{"id":"' OR 1=1 --"}`)), blackbox.B64.EncodeToString([]byte("1 UNION SELECT 1")),
			"\x00", "%"} {
			for _, path := range []string{"/admin/list-users?cursor=", "/admin/audit?cursor=", "/admin/get-active-users?limit=",
				"/user/notifications?cursor=", "/admin/get-active-users?cursor=", "/admin/audit?action="} {
				a := s.Ask("GET", path+url.QueryEscape(odd), nil, s.boss)
				if a.Status != 400 && a.Status != 200 || len(a.Body) > 2 && a.Status == 200 && !strings.HasPrefix(path,
					"/admin/list") {
					t.Errorf("%s%q: %s", path, odd, a)
				}
			}
		}
		if n := s.s.Count("users"); n < users {
			t.Errorf("%d users of %d", n, users)
		}
		first := s.Ask("GET", "/admin/audit?limit=1", nil, s.boss).Is(t, 200, "")
		next := strings.SplitN(strings.SplitN(first.Header.Get("Link"), "<", 2)[1], ">", 2)[0]
		u := storetest.Value(url.Parse(next))(t)
		s.Ask("GET", u.Path+"?"+u.RawQuery, nil, s.boss).Is(t, 200, "") // a genuine one
	}, nil},
	{"CVE-2024-44906", "bun: a negative number after a minus became a comment in the statement",
		func(t *testing.T, s stage) {
			for i, text := range []string{"x'); DELETE FROM users;--", `\'; --`, "-1", "$1 ? ?0 :name %s",
				"/* */ -- \n;", "'||'"} {
				var kept struct {
					Data struct {
						Message  string
						Priority int
					}
				}
				s.Ask("POST", "/announcement/add", map[string]any{"title": fmt.Sprintf("%s of %d", text, i), "message": text,
					"startDate": "2026-01-01", "endDate": "2026-12-31", "isActive": true, "priority": -1}, s.boss).
					Is(t, 200, "").Read(t, &kept)
				if kept.Data.Message != text || kept.Data.Priority != -1 {
					t.Errorf("%q is kept as %+v", text, kept)
				}
			}
			for _, path := range []string{"/announcement/get?id=-1", "/admin/login-history?userId=x&limit=-1"} {
				if a := s.Ask("GET", path, nil, s.boss); a.Status != 400 && string(a.Body) != "[]" {
					t.Errorf("%s: %s", path, a)
				}
			}
		}, nil},
	{"CVE-2025-48075", "Fiber: a number in brackets in the name of a field was an index outside of the list",
		func(t *testing.T, s stage) {
			for _, name := range []string{"limit[18446744073704]", "limit[-1]", "limit.18446744073704", "test.-1",
				"a[]", "a[b][c]"} {
				s.Ask("GET", "/admin/get-active-users?"+url.QueryEscape(name)+"=1", nil, s.boss).Is(t, 200, "")
				s.Ask("POST", "/auth/login", name+"=1", blackbox.Headers{"Content-Type": "application/x-www-form-urlencoded"}).
					Is(t, 415, "UNSUPPORTED_MEDIA")
			}
			s.alive()
		}, nil},
	{"CVE-2025-54801", "Fiber: a large number in the name of a field allocated as much memory",
		func(t *testing.T, s stage) {
			before := s.PeakMemory()
			for _, n := range []string{"99999999", "999999999", "2147483647"} {
				s.Ask("GET", "/admin/get-active-users?limit["+n+"]=1&a."+n+"=1", nil, s.boss).Is(t, 200, "")
				s.Ask("POST", "/auth/login", `{"email[`+n+`]":"x","email":"a@b.test","password":"x"}`, nil).
					Is(t, 401, "INVALID_CREDENTIALS")
				s.Ask("POST", "/auth/login", "email["+n+"]=x", blackbox.Headers{"Content-Type": "multipart/form-data; boundary=x"}).
					Is(t, 415, "UNSUPPORTED_MEDIA")
			}
			if grown := s.PeakMemory() - before; grown > 256<<20 {
				t.Errorf("%d MiB more", grown>>20)
			}
		}, nil},
}
