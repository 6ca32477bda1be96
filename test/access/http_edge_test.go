package access

import (
	"bytes"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Every answer carries the required headers and does not reveal the software behind it.
func TestAnswersCarrySecurityHeaders(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		for name, a := range map[string]blackbox.Answer{
			"success":   n.Do(t, "GET", "/health/live", nil, nil),
			"refusal":   n.Do(t, "POST", "/auth/login", "{}", nil),
			"no route":  n.Do(t, "GET", "/nothing", nil, nil),
			"no method": n.Do(t, "DELETE", "/auth/login", nil, nil),
			"page":      n.Do(t, "GET", "/docs", nil, nil),
		} {
			cache := "no-store"
			if name == "page" { // a file of the program, which is revalidated by its ETag
				cache = "no-cache"
			}
			for header, want := range map[string]string{"Api-Version": "1", "X-Content-Type-Options": "nosniff",
				"Cache-Control":   cache,
				"Referrer-Policy": "no-referrer", "Server": "", "Access-Control-Allow-Origin": ""} {
				if got := a.Header.Get(header); got != want {
					t.Errorf("%s: %s: %q, want %q", name, header, got, want)
				}
			}
			if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
				!strings.Contains(csp, "frame-ancestors 'none'") {
				t.Errorf("%s: Content-Security-Policy %q", name, csp)
			}
			if a.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: no x-request-id", name)
			}
		}
		console := n.Ok(t, "GET", "/console", nil, nil).Header.Get("Content-Security-Policy")
		before, after, _ := strings.Cut(console, "'nonce-")
		nonce, after, _ := strings.Cut(after, "'")
		if again := n.Ok(t, "GET", "/console/users/x", nil, nil).Header.Get("Content-Security-Policy"); len(nonce) < 16 ||
			strings.Contains(again, nonce) || before+"'nonce-…'"+after != "default-src 'none'; script-src 'self'; "+
			"style-src 'self' 'nonce-…'; img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "+
			"trusted-types default" {
			t.Errorf("the console's policies are %s and %s", console, again)
		}
		n.Do(t, "GET", "/nothing", nil, nil).Is(t, 404, "NOT_FOUND")
		n.Do(t, "DELETE", "/auth/login", nil, nil).Is(t, 405, "METHOD_NOT_ALLOWED")
		n.Do(t, "HEAD", "/health/live", nil, nil).Is(t, 200, "")
		for accept, want := range map[string]string{"tr-TR,en;q=0.5": "password: zorunludur", "ar": "password: مطلوب"} {
			if p := n.Do(t, "POST", "/auth/login", "{}", blackbox.Headers{"Accept-Language": accept}).Is(t, 400,
				"INVALID_FIELD").Problem(); p.Message != want {
				t.Errorf("%s: message %q, want %q", accept, p.Message, want)
			}
		}
	})
}

// The pages of development mode answer only this machine, and no page of another origin can read them through
// its browser.
func TestDevelopmentPagesAnswerOnlyThisMachine(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	n.Login(t, s.Seeded("user"))
	port := n.URL[strings.LastIndex(n.URL, ":"):]
	for _, path := range []string{"/", "/dev/outbox/page", "/dev/outbox", "/dev/service",
		"/dev/outbox?to=%2B905320000002"} {
		for _, host := range []string{"127.0.0.1" + port, "localhost" + port, "LOCALHOST", "[::1]" + port, "127.8.9.1"} {
			n.Ok(t, "GET", path, nil, blackbox.Headers{"Host": host})
		}
		for _, host := range []string{"evil.example.test", "127.0.0.1.evil.test" + port, "localhost.evil.test",
			"10.0.0.1" + port, "0.0.0.0" + port, "[::]", "127.0.0.1@evil.test"} {
			if a := n.Do(t, "GET", path, nil, blackbox.Headers{"Host": host}); a.Status != 403 && a.Status != 400 ||
				bytes.Contains(a.Body, []byte(`"code":"0`)) {
				t.Errorf("%s for the host %s: %s", path, host, a)
			}
		}
		for _, site := range []string{"cross-site", "same-site", "x"} {
			n.Do(t, "GET", path, nil, blackbox.Headers{"Sec-Fetch-Site": site}).Is(t, 403, "FORBIDDEN")
		}
		for _, site := range []string{"same-origin", "none"} {
			n.Ok(t, "GET", path, nil, blackbox.Headers{"Sec-Fetch-Site": site})
		}
		for _, origin := range []string{"http://evil.example.test", "null", "http://127.0.0.1:1",
			"https://evil.test" + port} {
			n.Do(t, "GET", path, nil, blackbox.Headers{"Origin": origin}).Is(t, 403, "FORBIDDEN")
		}
		n.Ok(t, "GET", path, nil, blackbox.Headers{"Origin": n.URL})
	}
	for _, page := range []string{"/static/index.html", "/static/outbox.html"} { // no way around the checks
		n.Do(t, "GET", page, nil, nil).Is(t, 404, "NOT_FOUND")
	}
	letters := n.Letters(t, "+90 532 000 00 02")
	if len(letters) == 0 || len(letters) != len(n.Letters(t, "0090 5320000002")) || letters[0].Channel != "SMS" ||
		letters[0].To != "+905320000002" ||
		letters[0].Code == "" ||
		!strings.Contains(letters[0].Body, letters[0].Code) {
		t.Errorf("letters %+v", letters)
	}
	if all := n.Letters(t, ""); len(all) != 2 {
		t.Errorf("%d letters in all, want SMS and MAIL", len(all))
	}
	if none := n.Do(t, "GET", "/dev/outbox?to=nobody@example.test", nil, nil); string(none.Body) != "[]" {
		t.Errorf("letters of an unknown address: %s", none)
	}
}

// Messages are sent in the requested language (D-GEN-16).
func TestMessagesInRequestedLanguage(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		seen := map[string]string{}
		for _, language := range []string{"tr", "en", "ar"} {
			n.Ok(t, "POST", "/auth/login", blackbox.LoginBody(demo), blackbox.Headers{"Accept-Language": language})
			letter := n.Letters(t, demo.Mail)[0]
			text := strings.ReplaceAll(letter.Subject+letter.Body, letter.Code, "")
			for other, before := range seen {
				if text == before {
					t.Errorf("%s and %s are the same: %s", language, other, text)
				}
			}
			seen[language] = text
		}
		if !strings.ContainsAny(seen["tr"], "ışğçöü") ||
			!strings.ContainsFunc(seen["ar"], func(r rune) bool { return r >= 0x600 && r < 0x700 }) {
			t.Errorf("letters %v", seen)
		}
	})
}

// Browsers on listed origins may use the service; others may not (D-GEN-20).
func TestCORSAllowsListedOrigins(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("HTTP_CORS_ORIGINS=https://app.example.test")
	n := s.Start()
	preflight := func(origin string) blackbox.Answer {
		t.Helper()
		return n.Do(
			t,
			"OPTIONS",
			"/auth/login",
			nil,
			blackbox.Headers{
				"Origin":                         origin,
				"Access-Control-Request-Method":  "POST",
				"Access-Control-Request-Headers": "content-type,p-auth",
			},
		)
	}
	ok := preflight("https://app.example.test")
	if ok.Status != 204 || ok.Header.Get("Access-Control-Allow-Origin") != "https://app.example.test" ||
		!strings.Contains(strings.ToLower(ok.Header.Get("Access-Control-Allow-Headers")), "p-auth") {
		t.Errorf("a listed origin: %d %v", ok.Status, ok.Header)
	}
	for _, origin := range []string{"https://evil.example.test", "http://app.example.test", "null"} {
		if a := preflight(origin); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", origin, a.Header)
		}
	}
	f := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(s.Seeded("user")),
		blackbox.Headers{"Origin": "https://app.example.test"}).
		Is(t, 200, "")
	exposed := strings.ToLower(f.Header.Get("Access-Control-Expose-Headers"))
	for _, name := range []string{"p-auth", "x-auth", "ot-auth", "retry-after", "x-request-id"} {
		if !strings.Contains(exposed, name) {
			t.Errorf("%s is not exposed: %s", name, exposed)
		}
	}
	if !strings.Contains(f.Header.Get("Vary"), "Origin") {
		t.Errorf("Vary %q", f.Header.Get("Vary"))
	}
}
