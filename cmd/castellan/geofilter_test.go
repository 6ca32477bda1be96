package main

import (
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Addresses of countries, and one that no table can know.
const (
	turkey  = "78.160.0.1"
	states  = "8.8.8.8"
	dutch   = "193.0.6.139"
	nowhere = "203.0.113.7"
	here    = "" // loopback: nothing stands in front
)

const countriesPath = "/user/geofilter/countries"

// place is a client somewhere, behind a proxy that says where.
type place struct {
	*blackbox.Node
	t  *testing.T
	ip string
}

func from(t *testing.T, n *blackbox.Node, ip string) place { return place{n, t, ip} }

func (p place) with(headers blackbox.Headers) blackbox.Headers {
	all := blackbox.Headers{}
	if p.ip != here {
		all["X-Forwarded-For"] = p.ip
	}
	maps.Copy(all, headers)
	return all
}

func (p place) ask(method, path string, body any, headers blackbox.Headers) blackbox.Answer {
	p.t.Helper()
	return p.Do(p.t, method, path, body, p.with(headers))
}

func (p place) complete(f blackbox.Flow, m blackbox.Method, value string) blackbox.Answer {
	p.t.Helper()
	return p.ask("POST", blackbox.CompletePath, blackbox.CompleteBody(m, value), blackbox.Headers{"p-auth": f.PAuth})
}

func (p place) result(f blackbox.Flow) blackbox.Answer {
	p.t.Helper()
	return p.ask("GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": f.PAuth})
}

func (p place) login(a blackbox.Account) blackbox.Answer {
	p.t.Helper()
	return p.ask("POST", "/auth/login", blackbox.LoginBody(a), nil)
}

// session logs in all the way.
func (p place) session(a blackbox.Account) blackbox.Headers {
	p.t.Helper()
	f := blackbox.FlowOf(p.t, p.login(a))
	got := p.complete(f, f.Method(p.t, "SMS"), p.Code(p.t, a, "SMS")).Is(p.t, 200, "")
	return blackbox.Headers{"x-auth": got.Header.Get("x-auth")}
}

// change starts a change of the filter.
func (p place) change(method, code string, me blackbox.Headers) blackbox.Flow {
	p.t.Helper()
	return blackbox.FlowOf(p.t, p.ask(method, countriesPath, map[string]string{"countryCode": code}, me))
}

// changed is a change all the way.
func (p place) changed(method, code string, a blackbox.Account, me blackbox.Headers) blackbox.Flow {
	p.t.Helper()
	f := p.change(method, code, me)
	final := blackbox.ReadFinal(p.t, p.complete(f, f.Method(p.t, "SMS"), p.Code(p.t, a, "SMS")).Is(p.t, 200, ""))
	if want := map[string]string{"POST": "GEOFILTER_ADD",
		"DELETE": "GEOFILTER_REMOVE"}[method]; !final.ExecResult.Success ||
		final.Action != want ||
		final.ExecResult.Data != nil {
		p.t.Fatalf("%s %s: %+v", method, code, final)
	}
	return f
}

// handshake is what asks for the socket as a plain request, for its refusal.
func (p place) handshake(f blackbox.Flow) blackbox.Answer {
	p.t.Helper()
	return p.ask(
		"GET",
		"/2fa",
		nil,
		blackbox.Headers{"p-auth": f.PAuth, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="},
	)
}

type country struct {
	ID                               int64
	UserID, CountryCode, CountryName string
	CreateDateTimeStamp              int64
	UpdateDateTimeStamp              int64
	FlagImage, IOSFlagImage          string
	PNGFlagImage                     string
}

func (p place) countries(me blackbox.Headers) (all []country) {
	p.t.Helper()
	p.ask("GET", countriesPath, nil, me).Is(p.t, 200, "").Read(p.t, &all)
	return all
}

// Section 4.21 from outside: what a filter looks like, how it changes, and what
// each wrong wish is answered (REQ-GEO-01, 03…08, D-GEO-03…06).
func TestGeofilter(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false").Start()
		demo, other := s.Seeded("user"), s.AddUser("user")
		at := from(t, n, turkey)
		at.ask("GET", countriesPath, nil, nil).Is(t, 401, "UNAUTHENTICATED")
		me := at.session(demo)
		if a := at.ask("GET", countriesPath, nil, me).Is(t, 200, ""); string(a.Body) != "[]" {
			t.Errorf("an empty filter: %s", a)
		}
		for _, method := range []string{"POST", "DELETE"} {
			for _, body := range []any{nil, map[string]any{}, map[string]any{"countryCode": ""},
				map[string]any{"countryCode": "XX"}, map[string]any{"countryCode": "XK"},
				map[string]any{"countryCode": "EU"}, map[string]any{"countryCode": "TUR"}, map[string]any{"countryCode": "90"},
				map[string]any{"countryCode": "ıt"},
				map[string]any{"countryCode": nil}, map[string]any{"countryCode": 90},
				map[string]any{"countryCode": []string{"TR"}}} {
				a := at.ask(method, countriesPath, body, me).Is(t, 400, "INVALID_FIELD")
				if a.Header.Get("p-auth") != "" || a.Problem().Field != "countryCode" {
					t.Errorf("%s %v: %s", method, body, a)
				}
			}
		}
		at.ask("DELETE", countriesPath, map[string]string{"countryCode": "TR"}, me).Is(t, 404, "RECORD_NOT_FOUND")

		// Nothing changes before the challenge is complete.
		before := time.Now().UnixMilli()
		f := at.change("POST", "tr", me)
		open := at.change("POST", "DE", me)
		if len(at.countries(me)) != 0 || len(from(t, n, states).countries(me)) != 0 {
			t.Error("a started change has changed something")
		}
		at.complete(f, f.Method(t, "SMS"), "000000").Is(t, 422, "OTP_INVALID")
		mail := n.Letters(t, demo.Mail)
		code := n.Letters(t, demo.Number())
		if len(mail) < 2 || len(code) < 2 {
			t.Fatalf("%d and %d letters", len(mail), len(code))
		}
		socket := n.SocketWith(t, f, at.with(nil))
		final := at.complete(f, f.Method(t, "SMS"), code[1].Code).
			Is(t, 200, "").
			Keys(t, "action", "execResult", "challengeId")
		socket.Expect(f, "GEOFILTER_ADD", "METHOD_COMPLETE")
		socket.Expect(f, "GEOFILTER_ADD", "ACTION_COMPLETE")
		sameOutcome(t, final, at.result(f))

		// Every session has ended, and earlier challenges are closed.
		at.ask("GET", countriesPath, nil, me).Is(t, 401, "TOKEN_REVOKED")
		at.complete(open, open.Method(t, "SMS"), code[0].Code).Is(t, 409, "CHALLENGE_CLOSED")
		me = at.session(demo)
		all := at.countries(me)
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
			if a := at.ask("GET", path, nil, nil); !ok || a.Status != 200 || a.Header.Get("Content-Type") != kind ||
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
			if a := at.ask("GET", path, nil, nil); a.Status < 400 || a.Status >= 500 {
				t.Errorf("%s: %d", path, a.Status)
			}
		}
		for language, want := range map[string]string{"tr": "Türkiye", "ar": "تركيا", "en": "Turkey"} {
			me["Accept-Language"] = language
			if got := at.countries(me)[0].CountryName; got != want {
				t.Errorf("%s: %q, want %q", language, got, want)
			}
		}
		delete(me, "Accept-Language")
		s.Exec("UPDATE users SET language = 'tr' WHERE email = $1", demo.Mail)
		if got := at.countries(me)[0].CountryName; got != "Türkiye" {
			t.Errorf("in the user's language: %q", got)
		}
		s.Exec("UPDATE users SET language = '' WHERE email = $1", demo.Mail)
		at.ask("POST", countriesPath, map[string]string{"countryCode": "TR"}, me).Is(t, 409, "RECORD_ALREADY_EXIST")
		at.ask("POST", countriesPath, map[string]string{"countryCode": "tr"}, me).Is(t, 409, "RECORD_ALREADY_EXIST")

		// It is the caller's own filter, and a DELETE may come without a body.
		his := from(t, n, states).session(other)
		if len(from(t, n, states).countries(his)) != 0 {
			t.Error("another account has a filter")
		}
		from(t, n, states).ask("DELETE", countriesPath+"?countryCode=TR", nil, his).Is(t, 404, "RECORD_NOT_FOUND")
		f = blackbox.FlowOf(t, at.ask("DELETE", countriesPath+"?countryCode=tr", nil, me))
		at.complete(f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, "")
		at.ask("GET", countriesPath, nil, me).Is(t, 401, "TOKEN_REVOKED")
		if got := from(t, n, states).countries(from(t, n, states).session(demo)); len(got) != 0 {
			t.Errorf("after the removal: %+v", got)
		}
		if s.Count("audit WHERE action = 'GEOFILTER_ADD' AND target = 'TR' AND outcome = 'success'") != 1 ||
			s.Count("audit WHERE action = 'GEOFILTER_REMOVE' AND target = 'TR' AND outcome = 'success'") != 1 {
			t.Error("the audit does not tell of the changes")
		}
	})
}

// Every request of D-GEO-02 from where the account may not be used, and the one
// exception.
func TestGeofilterIsEnforced(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false")
		n := s.Start()
		demo := s.Seeded("user")
		tr, us, nl := from(t, n, turkey), from(t, n, states), from(t, n, dutch)

		// A user shuts the own country out, and can still read the result (D-GEO-05).
		f := us.changed("POST", "TR", demo, us.session(demo))
		us.result(f).Is(t, 200, "")
		socket := n.SocketWith(t, f, us.with(nil))
		socket.Expect(f, "GEOFILTER_ADD", "METHOD_COMPLETE")
		socket.Expect(f, "GEOFILTER_ADD", "ACTION_COMPLETE")

		us.login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		from(t, n, nowhere).login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		from(t, n, "10.1.2.3").session(demo) // development only
		from(t, n, here).session(demo)
		wrong := demo
		wrong.Password = "not-the-password"
		if a, b := string(us.login(demo).Body), string(us.login(wrong).Body); anonymous(a) != anonymous(b) {
			t.Errorf("%s and %s", a, b)
		}

		me := tr.session(demo)
		tr.ask("GET", countriesPath, nil, me).Is(t, 200, "")
		for _, ip := range []string{states, nowhere, "2001:4860:4860::8888", "::ffff:" + states, states + ", " + states} {
			at := from(t, n, ip)
			at.ask("GET", countriesPath, nil, me).Is(t, 403, "GEO_BLOCKED")
			at.ask("POST", countriesPath, "not json", me).Is(t, 403, "GEO_BLOCKED")
			at.ask("GET", "/admin/roles", nil, blackbox.Headers{"x-auth": me["x-auth"], "tenant-id": "another"}).
				Is(t, 403, "GEO_BLOCKED")
			at.ask("POST", "/auth/logout", nil, me).Is(t, 403, "GEO_BLOCKED")
		}
		// A country is nothing that a client says.
		for _, header := range []string{"CF-IPCountry", "X-Country", "X-Real-IP", "True-Client-IP", "Forwarded",
			"X_Forwarded_For"} {
			value := map[bool]string{true: "TR", false: turkey}[strings.Contains(header, "ountry")]
			us.ask("GET", countriesPath, nil, blackbox.Headers{"x-auth": me["x-auth"], header: value}).Is(t, 403, "GEO_BLOCKED")
		}
		us.ask("GET", countriesPath, nil, blackbox.Headers{"x-auth": me["x-auth"], "X-Forwarded-For": turkey + ", " +
			"" + states}).
			Is(t, 403, "GEO_BLOCKED")

		// A challenge's token is worth nothing there, and no worse for it.
		f = blackbox.FlowOf(t, tr.login(demo))
		sms := f.Method(t, "SMS")
		pauth := blackbox.Headers{"p-auth": f.PAuth}
		us.complete(f, sms, n.Code(t, demo, "SMS")).Is(t, 403, "GEO_BLOCKED")
		us.ask("POST", blackbox.CompletePath, map[string]string{}, pauth).Is(t, 403, "GEO_BLOCKED")
		us.ask("POST", blackbox.RenewPath, map[string]string{"methodId": sms.ID, "method": "SMS"}, pauth).
			Is(t, 403, "GEO_BLOCKED")
		us.result(f).Is(t, 403, "GEO_BLOCKED")
		us.handshake(f).Is(t, 403, "GEO_BLOCKED")
		tr.complete(f, sms, n.Code(t, demo, "SMS")).Is(t, 200, "")
		us.result(f).Is(t, 403, "GEO_BLOCKED")
		tr.result(f).Is(t, 200, "")

		// A reset begins as ever and leads nowhere: nothing is sent.
		reset := map[string]string{"countryCode": demo.Country, "phoneNumber": demo.Phone}
		letters := len(n.Letters(t, demo.Number()))
		f = blackbox.FlowOf(t, us.ask("POST", "/auth/password/reset", reset, nil))
		if got := len(n.Letters(t, demo.Number())); got != letters {
			t.Errorf("%d letters more", got-letters)
		}
		us.complete(f, f.Method(t, "SMS"), "123456").Is(t, 422, "OTP_INVALID")
		f = blackbox.FlowOf(t, tr.ask("POST", "/auth/password/reset", reset, nil))
		tr.complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		// Whose account is filtered shows only when the token is redeemed (D-PWD-01).
		once := blackbox.Headers{
			"ot-auth": us.complete(f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, "").Header.Get("ot-auth"),
		}
		next := map[string]string{"password": "another-lantern-orchard", "passwordVerify": "another-lantern-orchard"}
		us.ask("POST", "/auth/password/update", next, once).Is(t, 403, "GEO_BLOCKED")
		tr.ask("POST", "/auth/password/update", next, once).Is(t, 200, "")
		demo.Password = next["password"]

		// More countries, and fewer: a change is judged by the filter before it, and
		// everything else by the one after.
		f = blackbox.FlowOf(t, tr.login(demo))
		done := tr.complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		tr.changed("POST", "NL", demo, blackbox.Headers{"x-auth": done.Header.Get("x-auth")})
		me = nl.session(demo)
		removal := tr.changed("DELETE", "TR", demo, me)
		tr.result(removal).Is(t, 200, "")
		nl.result(removal).Is(t, 200, "")
		us.result(removal).Is(t, 403, "GEO_BLOCKED")
		us.handshake(removal).Is(t, 403, "GEO_BLOCKED")
		tr.result(f).Is(t, 403, "GEO_BLOCKED") // of a login, long done
		tr.login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		me = nl.session(demo)
		n.Kill()

		// All of it is there after a start.
		n = s.Start()
		tr, us, nl = from(t, n, turkey), from(t, n, states), from(t, n, dutch)
		nl.ask("GET", countriesPath, nil, me).Is(t, 200, "")
		tr.ask("GET", countriesPath, nil, me).Is(t, 403, "GEO_BLOCKED")
		tr.result(removal).Is(t, 200, "")
		us.result(removal).Is(t, 403, "GEO_BLOCKED")

		// An operator lets the user in again, and the running service knows.
		cleared := s.Command("", "user", "clear-geofilter", demo.Number())
		if cleared.Code != 0 || cleared.Out != "cleared NL\n" {
			t.Fatalf("exit %d: %s%s", cleared.Code, cleared.Out, cleared.ErrOut)
		}
		blackbox.Until(
			t,
			within(5),
			"revoked",
			func() bool { return nl.ask("GET", countriesPath, nil, me).Code() == "TOKEN_REVOKED" },
		)
		blackbox.Until(t, within(5), "let in", func() bool {
			f := blackbox.FlowOf(t, us.login(demo))
			return us.complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Status == 200
		})
		if got := s.Command("", "user", "clear-geofilter", demo.Mail); got.Code != 0 ||
			!strings.HasPrefix(got.Out, "nothing to clear") {
			t.Errorf("a second time: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
		}
		if got := s.Command("", "user", "clear-geofilter", "nobody"); got.Code != 1 ||
			!strings.Contains(got.ErrOut, "no account") {
			t.Errorf("nobody: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
		}
		n.Stop() // writes what is left of the audit
		if s.Count("audit WHERE action = 'DENIED' AND detail LIKE 'GEO_BLOCKED%'") == 0 ||
			s.Count("audit WHERE action = 'GEOFILTER_CLEAR' AND actor_id = 'operator'") != 1 {
			t.Error("the audit does not tell")
		}
		if got := s.Command("", "audit", "verify"); got.Code != 0 {
			t.Errorf("audit verify: %s", got.ErrOut)
		}
	})
}

// What may differ between two refusals of the same thing.
var perRequest = regexp.MustCompile(`"requestId":"[^"]*"`)

func anonymous(body string) string { return perRequest.ReplaceAllString(body, "") }
