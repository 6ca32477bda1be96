package access

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Section 4.21 from outside: the shape of a filter, its changes, and the error of each invalid request
// (REQ-GEO-01, 03…08, D-GEO-03…06).
func TestGeofilterChanges(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false").Start()
		demo, other := s.Seeded("user"), s.AddUser("user")
		at := blackbox.From(t, n, blackbox.Turkey)
		at.Ask("GET", blackbox.CountriesPath, nil, nil).Is(t, 401, "UNAUTHENTICATED")
		me := at.Session(demo)
		if a := at.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 200, ""); string(a.Body) != "[]" {
			t.Errorf("an empty filter: %s", a)
		}
		for _, method := range []string{"POST", "DELETE"} {
			for _, body := range []any{nil, map[string]any{"countryCode": "XX"}, map[string]any{"countryCode": 90}} {
				a := at.Ask(method, blackbox.CountriesPath, body, me).Is(t, 400, "INVALID_FIELD")
				if a.Header.Get("p-auth") != "" || a.Problem().Field != "countryCode" {
					t.Errorf("%s %v: %s", method, body, a)
				}
			}
		}
		at.Ask("DELETE", blackbox.CountriesPath, map[string]string{"countryCode": "TR"}, me).Is(t, 404, "RECORD_NOT_FOUND")

		// Nothing changes before the challenge is complete.
		before := time.Now().UnixMilli()
		f := at.Change("POST", "tr", me)
		open := at.Change("POST", "DE", me)
		if len(at.Countries(me)) != 0 || len(blackbox.From(t, n, blackbox.States).Countries(me)) != 0 {
			t.Error("a started change has changed something")
		}
		at.Complete(f, f.Method(t, "SMS"), "000000").Is(t, 422, "OTP_INVALID")
		mail := n.Letters(t, demo.Mail)
		code := n.Letters(t, demo.Number())
		if len(mail) < 2 || len(code) < 2 {
			t.Fatalf("%d and %d letters", len(mail), len(code))
		}
		socket := n.SocketWith(t, f, at.With(nil))
		final := at.Complete(f, f.Method(t, "SMS"), code[1].Code).
			Is(t, 200, "").
			Keys(t, "action", "execResult", "challengeId")
		socket.Expect(f, "GEOFILTER_ADD", "METHOD_COMPLETE")
		socket.Expect(f, "GEOFILTER_ADD", "ACTION_COMPLETE")
		blackbox.SameOutcome(t, final, at.Result(f))

		// Every session has ended, and earlier challenges are closed.
		at.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 401, "TOKEN_REVOKED")
		at.Complete(open, open.Method(t, "SMS"), code[0].Code).Is(t, 409, "CHALLENGE_CLOSED")
		me = at.Session(demo)
		all := at.Countries(me)
		if len(all) != 1 {
			t.Fatalf("countries %+v", all)
		}
		c := all[0]
		if c.ID <= 0 || c.UserID == "" || c.CountryCode != "TR" || c.CountryName != "Turkey" ||
			c.CreateDateTimeStamp < before ||
			c.CreateDateTimeStamp > time.Now().UnixMilli() ||
			c.UpdateDateTimeStamp != c.CreateDateTimeStamp {
			t.Errorf("record %+v", c)
		}
		for address, kind := range map[string]string{c.FlagImage: "image/svg+xml", c.PNGFlagImage: "image/png",
			c.IOSFlagImage: "image/png"} {
			path, ok := strings.CutPrefix(address, n.URL)
			if a := at.Ask("GET", path, nil, nil); !ok || a.Status != 200 || a.Header.Get("Content-Type") != kind ||
				len(a.Body) == 0 ||
				!strings.Contains(a.Header.Get("Cache-Control"), "max-age") {
				t.Errorf("%s: %d %v", address, a.Status, a.Header)
			}
		}
		if c.FlagImage == c.PNGFlagImage || c.PNGFlagImage == c.IOSFlagImage {
			t.Errorf("flags %+v", c)
		}
		for _, path := range []string{"/flags/XK.svg", "/flags/TR.gif", "/flags/TR", "/flags/TR.", "/flags/.svg",
			"/flags/LICENSE", "/flags/..%2fstatic%2fapp.js", "/flags/TR.ios.svg"} {
			if a := at.Ask("GET", path, nil, nil); a.Status < 400 || a.Status >= 500 {
				t.Errorf("%s: %d", path, a.Status)
			}
		}
		s.Exec("UPDATE users SET language = 'tr' WHERE email = $1", demo.Mail)
		if got := at.Countries(me)[0].CountryName; got != "Türkiye" {
			t.Errorf("in the user's language: %q", got)
		}
		s.Exec("UPDATE users SET language = '' WHERE email = $1", demo.Mail)
		at.Ask("POST", blackbox.CountriesPath, map[string]string{"countryCode": "TR"}, me).Is(t, 409, "RECORD_ALREADY_EXIST")
		at.Ask("POST", blackbox.CountriesPath, map[string]string{"countryCode": "tr"}, me).Is(t, 409, "RECORD_ALREADY_EXIST")

		// It is the caller's own filter, and a DELETE may come without a body.
		his := blackbox.From(t, n, blackbox.States).Session(other)
		if len(blackbox.From(t, n, blackbox.States).Countries(his)) != 0 {
			t.Error("another account has a filter")
		}
		blackbox.From(t, n, blackbox.States).Ask("DELETE", blackbox.CountriesPath+"?countryCode=TR", nil, his).Is(t, 404,
			"RECORD_NOT_FOUND")
		f = blackbox.FlowOf(t, at.Ask("DELETE", blackbox.CountriesPath+"?countryCode=tr", nil, me))
		at.Complete(f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, "")
		at.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 401, "TOKEN_REVOKED")
		if got := blackbox.From(t, n, blackbox.States).Countries(blackbox.From(t, n,
			blackbox.States).Session(demo)); len(got) != 0 {
			t.Errorf("after the removal: %+v", got)
		}
		if s.Count("audit WHERE action = 'GEOFILTER_ADD' AND target = 'TR' AND outcome = 'success'") != 1 ||
			s.Count("audit WHERE action = 'GEOFILTER_REMOVE' AND target = 'TR' AND outcome = 'success'") != 1 {
			t.Error("the audit does not tell of the changes")
		}
	})
}

// Every request of D-GEO-02 is blocked from a country where the account may not be used, with one exception.
func TestGeofilterIsEnforced(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false")
		n := s.Start()
		demo := s.Seeded("user")
		tr, us, nl := blackbox.From(t, n, blackbox.Turkey), blackbox.From(t, n, blackbox.States), blackbox.From(t, n,
			blackbox.Dutch)

		// A user blocks the current country and can still read the result (D-GEO-05).
		f := us.Changed("POST", "TR", demo, us.Session(demo))
		us.Result(f).Is(t, 200, "")
		socket := n.SocketWith(t, f, us.With(nil))
		socket.Expect(f, "GEOFILTER_ADD", "METHOD_COMPLETE")
		socket.Expect(f, "GEOFILTER_ADD", "ACTION_COMPLETE")

		us.Login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		blackbox.From(t, n, blackbox.Nowhere).Login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		blackbox.From(t, n, "10.1.2.3").Session(demo) // development only
		blackbox.From(t, n, blackbox.Here).Session(demo)
		wrong := demo
		wrong.Password = "not-the-password"
		if a, b := string(us.Login(demo).Body), string(us.Login(wrong).Body); anonymous(a) != anonymous(b) {
			t.Errorf("%s and %s", a, b)
		}

		me := tr.Session(demo)
		tr.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 200, "")
		for _, ip := range []string{blackbox.States, blackbox.Nowhere, "2001:4860:4860::8888", "::ffff:" + blackbox.States,
			blackbox.States + ", " + blackbox.States} {
			at := blackbox.From(t, n, ip)
			at.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 403, "GEO_BLOCKED")
			at.Ask("POST", blackbox.CountriesPath, "not json", me).Is(t, 403, "GEO_BLOCKED")
			at.Ask("GET", "/admin/roles", nil, blackbox.Headers{"x-auth": me["x-auth"], "tenant-id": "another"}).
				Is(t, 403, "GEO_BLOCKED")
			at.Ask("POST", "/auth/logout", nil, me).Is(t, 403, "GEO_BLOCKED")
		}
		// The token of a challenge is refused there, and stays valid elsewhere.
		f = blackbox.FlowOf(t, tr.Login(demo))
		sms := f.Method(t, "SMS")
		pauth := blackbox.Headers{"p-auth": f.PAuth}
		us.Complete(f, sms, n.Code(t, demo, "SMS")).Is(t, 403, "GEO_BLOCKED")
		us.Ask("POST", blackbox.CompletePath, map[string]string{}, pauth).Is(t, 403, "GEO_BLOCKED")
		us.Ask("POST", blackbox.RenewPath, map[string]string{"methodId": sms.ID, "method": "SMS"}, pauth).
			Is(t, 403, "GEO_BLOCKED")
		us.Result(f).Is(t, 403, "GEO_BLOCKED")
		us.Handshake(f).Is(t, 403, "GEO_BLOCKED")
		tr.Complete(f, sms, n.Code(t, demo, "SMS")).Is(t, 200, "")
		us.Result(f).Is(t, 403, "GEO_BLOCKED")
		tr.Result(f).Is(t, 200, "")

		// A password reset starts as usual from there, but no message is sent.
		reset := map[string]string{"countryCode": demo.Country, "phoneNumber": demo.Phone}
		letters := len(n.Letters(t, demo.Number()))
		f = blackbox.FlowOf(t, us.Ask("POST", "/auth/password/reset", reset, nil))
		if got := len(n.Letters(t, demo.Number())); got != letters {
			t.Errorf("%d letters more", got-letters)
		}
		us.Complete(f, f.Method(t, "SMS"), "123456").Is(t, 422, "OTP_INVALID")
		f = blackbox.FlowOf(t, tr.Ask("POST", "/auth/password/reset", reset, nil))
		tr.Complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		// The filter of an account becomes visible only when the token is redeemed (D-PWD-01).
		once := blackbox.Headers{
			"ot-auth": us.Complete(f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, "").Header.Get("ot-auth"),
		}
		next := map[string]string{"password": "another-lantern-orchard", "passwordVerify": "another-lantern-orchard"}
		us.Ask("POST", "/auth/password/update", next, once).Is(t, 403, "GEO_BLOCKED")
		tr.Ask("POST", "/auth/password/update", next, once).Is(t, 200, "")
		demo.Password = next["password"]

		// Countries are added and removed. The filter before a change applies to the change, and the new
		// filter to everything else.
		f = blackbox.FlowOf(t, tr.Login(demo))
		done := tr.Complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		tr.Changed("POST", "NL", demo, blackbox.Headers{"x-auth": done.Header.Get("x-auth")})
		me = nl.Session(demo)
		removal := tr.Changed("DELETE", "TR", demo, me)
		tr.Result(removal).Is(t, 200, "")
		nl.Result(removal).Is(t, 200, "")
		us.Result(removal).Is(t, 403, "GEO_BLOCKED")
		us.Handshake(removal).Is(t, 403, "GEO_BLOCKED")
		tr.Result(f).Is(t, 403, "GEO_BLOCKED") // of a login that completed long ago
		tr.Login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		me = nl.Session(demo)
		n.Kill()

		// The filter survives a restart.
		n = s.Start()
		tr, us = blackbox.From(t, n, blackbox.Turkey), blackbox.From(t, n, blackbox.States)
		nl = blackbox.From(t, n, blackbox.Dutch)
		nl.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 200, "")
		tr.Ask("GET", blackbox.CountriesPath, nil, me).Is(t, 403, "GEO_BLOCKED")
		tr.Result(removal).Is(t, 200, "")
		us.Result(removal).Is(t, 403, "GEO_BLOCKED")

		// An operator clears the filter, and the running service applies it.
		cleared := s.Command("", "user", "clear-geofilter", demo.Number())
		if cleared.Code != 0 || cleared.Out != "cleared NL\n" {
			t.Fatalf("exit %d: %s%s", cleared.Code, cleared.Out, cleared.ErrOut)
		}
		blackbox.Until(t, blackbox.Within(5), "revoked",
			func() bool { return nl.Ask("GET", blackbox.CountriesPath, nil, me).Code() == "TOKEN_REVOKED" })
		blackbox.Until(t, blackbox.Within(5), "let in", func() bool {
			f := blackbox.FlowOf(t, us.Login(demo))
			return us.Complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Status == 200
		})
		if got := s.Command("", "user", "clear-geofilter", demo.Mail); got.Code != 0 ||
			!strings.HasPrefix(got.Out, "nothing to clear") {
			t.Errorf("a second time: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
		}
		n.Stop() // flushes the audit
		if s.Count("audit WHERE action = 'DENIED' AND detail LIKE 'GEO_BLOCKED%'") == 0 ||
			s.Count("audit WHERE action = 'GEOFILTER_CLEAR' AND actor_id = 'operator'") != 1 {
			t.Error("the audit does not tell")
		}
	})
}

// perRequest is the part in which two equal refusals may differ.
var perRequest = regexp.MustCompile(`"requestId":"[^"]*"`)

func anonymous(body string) string { return perRequest.ReplaceAllString(body, "") }
