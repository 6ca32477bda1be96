package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Every answer carries what it must, and tells nothing of what made it.
func TestAnswersCarryTheirHeaders(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		for name, a := range map[string]blackbox.Answer{
			"success":   n.Do(t, "GET", "/health/live", nil, nil),
			"refusal":   n.Do(t, "POST", "/auth/login", "{}", nil),
			"no route":  n.Do(t, "GET", "/nothing", nil, nil),
			"no method": n.Do(t, "DELETE", "/auth/login", nil, nil),
			"page":      n.Do(t, "GET", "/docs", nil, nil),
		} {
			cache := "no-store"
			if name == "page" { // a file of the program: its ETag is asked for each time
				cache = "no-cache"
			}
			for header, want := range map[string]string{"Api-Version": "1", "X-Content-Type-Options": "nosniff", "Cache-Control": cache,
				"Referrer-Policy": "no-referrer", "Server": "", "Access-Control-Allow-Origin": ""} {
				if got := a.Header.Get(header); got != want {
					t.Errorf("%s: %s: %q, want %q", name, header, got, want)
				}
			}
			if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
				t.Errorf("%s: Content-Security-Policy %q", name, csp)
			}
			if a.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: no x-request-id", name)
			}
		}
		n.Do(t, "GET", "/nothing", nil, nil).Is(t, 404, "NOT_FOUND")
		n.Do(t, "DELETE", "/auth/login", nil, nil).Is(t, 405, "METHOD_NOT_ALLOWED")
		n.Do(t, "HEAD", "/health/live", nil, nil).Is(t, 200, "")
		for accept, want := range map[string]string{"tr-TR,en;q=0.5": "password: zorunludur", "ar": "password: مطلوب"} {
			if p := n.Do(t, "POST", "/auth/login", "{}", blackbox.Headers{"Accept-Language": accept}).Is(t, 400, "INVALID_FIELD").Problem(); p.Message != want {
				t.Errorf("%s: message %q, want %q", accept, p.Message, want)
			}
		}
	})
}

// JSON is read strictly (SEC-40): what two readers might read differently is
// refused, and no text makes the database stumble.
func TestStrictBodies(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		good := fmt.Sprintf(`{"email":%q,"password":%q}`, demo.Mail, demo.Password)
		n.Do(t, "POST", "/auth/login", good, nil).Is(t, 200, "")
		n.Do(t, "POST", "/auth/login", good[:len(good)-1]+`,"unknown":{"a":[1,2,{"b":null}]}}`, nil).Is(t, 200, "")
		for name, body := range map[string]string{
			"duplicate key":          good[:len(good)-1] + `,"email":"admin@demo.castellan.test"}`,
			"duplicate key, escaped": good[:len(good)-1] + `,"em\u0061il":"admin@demo.castellan.test"}`,
			"duplicate below":        good[:len(good)-1] + `,"x":{"a":1,"a":2}}`,
			"trailing bytes":         good + "x", "two values": good + good, "trailing comma": good[:len(good)-1] + ",}",
			"array": "[" + good + "]", "null": "null", "text": `"x"`, "number": "1", "cut": good[:len(good)-1],
			"deep":           good[:len(good)-1] + `,"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}",
			"bad UTF-8":      good[:len(good)-1] + ",\"x\":\"\xff\"}",
			"lone surrogate": good[:len(good)-1] + `,"x":"\ud800"}`,
			"control":        good[:len(good)-1] + ",\"x\":\"\x01\"}",
			"comment":        "/* */" + good, "BOM": "\uFEFF" + good,
			"NaN":                  good[:len(good)-1] + `,"x":NaN}`,
			"NUL":                  `{"email":"a\u0000@example.test","password":"x"}`,
			"NUL in the password":  `{"email":"a@example.test","password":"x\u0000y"}`,
			"key in another case":  strings.Replace(good, "email", "Email", 1),
			"number for text":      fmt.Sprintf(`{"email":%q,"password":12345678}`, demo.Mail),
			"phone and mail":       good[:len(good)-1] + `,"countryCode":"90","phoneNumber":"5320000002"}`,
			"phone without a code": `{"phoneNumber":"5320000002","password":"x"}`,
			"empty password":       fmt.Sprintf(`{"email":%q,"password":""}`, demo.Mail),
			"long password":        fmt.Sprintf(`{"email":%q,"password":%q}`, demo.Mail, strings.Repeat("x", 1025)),
		} {
			if a := n.Do(t, "POST", "/auth/login", body, nil); a.Status != 400 || a.Code() != "INVALID_FIELD" {
				t.Errorf("%s: %s", name, a)
			}
		}
		for _, odd := range []string{"' OR 1=1 --", `"; DROP TABLE users; --`, "%", "\u202e\u0000"[:3], strings.Repeat("a", 300) + "@example.test", "x@\u0130.test"} {
			if a := n.Do(t, "POST", "/auth/login", map[string]string{"email": odd, "password": odd}, nil); a.Status != 400 && a.Code() != "INVALID_CREDENTIALS" {
				t.Errorf("%q: %s", odd, a)
			}
		}
		for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=iso-8859-9", "application/json, text/plain", "application/xml"} {
			if a := n.Do(t, "POST", "/auth/login", good, blackbox.Headers{"Content-Type": contentType}); a.Status != 415 || a.Code() != "UNSUPPORTED_MEDIA" {
				t.Errorf("Content-Type %q: %s", contentType, a)
			}
		}
		n.Do(t, "POST", "/auth/login", good, blackbox.Headers{"Content-Type": "application/json; charset=UTF-8"}).Is(t, 200, "")

		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		w.Write([]byte(good))
		w.Close()
		for _, coding := range []string{"gzip", "gzip, gzip", "br", "deflate", "x"} {
			n.Do(t, "POST", "/auth/login", packed.Bytes(), blackbox.Headers{"Content-Encoding": coding}).Is(t, 415, "UNSUPPORTED_MEDIA")
		}
		n.Do(t, "POST", "/auth/login", good, blackbox.Headers{"Content-Encoding": "identity"}).Is(t, 200, "")
		tooLong := n.Raw(t, fmt.Sprintf("POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 1<<20+1))
		if !strings.HasPrefix(tooLong, "HTTP/1.1 413 ") || !strings.Contains(tooLong, "PAYLOAD_TOO_LARGE") {
			t.Errorf("a body of a byte too many: %s", tooLong)
		}
		n.Do(t, "POST", "/auth/login", strings.Repeat(" ", 1<<20-len(good))+good, nil).Is(t, 200, "")
		n.Do(t, "GET", "/health/live", nil, blackbox.Headers{"X-Long": strings.Repeat("x", 9<<10)}).Is(t, 431, "HEADERS_TOO_LARGE")
		n.Do(t, "GET", "/nothing?"+strings.Repeat("x", 3<<10), nil, nil).Is(t, 431, "HEADERS_TOO_LARGE")
		n.Do(t, "GET", "/health/live", nil, blackbox.Headers{"X-Long": strings.Repeat("x", 6<<10)}).Is(t, 200, "")
	})
}

// Messages that a proxy might read differently are refused, and what hides
// behind one is not served (SEC-31, SEC-34).
func TestFraming(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start()
	const hidden = "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	post := func(head, body string) string {
		return "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + head + "\r\n" + body
	}
	for name, c := range map[string]struct{ request, want string }{
		"length and chunks":      {post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"+hidden), "400"},
		"chunks and length":      {post("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "2\r\n{}\r\n0\r\n\r\n"+hidden), "400"},
		"two lengths":            {post("Content-Length: 2\r\nContent-Length: 5\r\n", "{}"+hidden), "400"},
		"two codings":            {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+hidden), "400"},
		"odd coding":             {post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+hidden), "400"},
		"odd length":             {post("Content-Length: +2\r\n", "{}"+hidden), "400"},
		"chunks in HTTP/1.0":     {"POST /auth/login HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, "400"},
		"chunk size with a sign": {post("Transfer-Encoding: chunked\r\n", "+2\r\n{}\r\n0\r\n\r\n"+hidden), "400"},
		"no host":                {"GET /health/live HTTP/1.1\r\n\r\n" + hidden, "400"},
		"two hosts":              {"GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + hidden, "400"},
		"NUL in a header":        {"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n" + hidden, "400"},
		"bare LF":                {"GET /health/live HTTP/1.1\nHost: localhost\n\n" + hidden, "400"},
		"folded":                 {"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n" + hidden, "400"},
		"space before the colon": {"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length : 9\r\n\r\n" + hidden, "400"},
		"HTTP/1.9":               {"GET /health/live HTTP/1.9\r\nHost: localhost\r\n\r\n" + hidden, "400"},
		"no HTTP":                {"hello\r\n\r\n" + hidden, "400"},
		"TLS":                    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := n.Raw(t, c.request)
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.want+" ") {
				t.Fatalf("got %q, want %s", got, c.want)
			}
			if strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Errorf("what was hidden was served:\n%s", got)
			}
			if !strings.Contains(got, "application/problem+json") {
				t.Errorf("not a problem:\n%s", got)
			}
		})
	}
	for target, want := range map[string]string{
		"/health/live": "200", "/health/live/": "404", "/HEALTH/live": "404", "//health/live": "404", "/health//live": "404", "/./health/live": "404",
		"/x/../health/live": "404", "/%68ealth/live": "404", "/health%2Flive": "404", "/health/live;x=1": "404", "/health/live?x=1": "200",
		"http://localhost/health/live": "400", "health/live": "400", "*": "400", "/health/live#x": "400", "/health\\live": "400", "/health/live\x7f": "400",
	} {
		got := n.Raw(t, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") {
			t.Errorf("%s: got %.60q, want %s", target, got, want)
		}
	}
	for method, want := range map[string]string{"TRACE": "405", "CONNECT": "405", "PROPFIND": "405", "get": "405", "OPTIONS": "405"} {
		got := n.Raw(t, method+" /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if code := strings.Fields(got + " none none")[1]; code != want && code != "400" {
			t.Errorf("%s: got %.60q, want %s", method, got, want)
		}
	}
	if got := n.Raw(t, strings.Repeat(strings.Replace(hidden, "Connection: close\r\n", "", 1), 3)+hidden); strings.Count(got, "HTTP/1.1 200 ") != 4 {
		t.Errorf("four requests in a row had %d answers", strings.Count(got, "HTTP/1.1 200 "))
	}
	twice := "GET /auth/sessions HTTP/1.1\r\nHost: localhost\r\nX-Auth: a\r\nX-Auth: b\r\nConnection: close\r\n\r\n"
	if got := n.Raw(t, twice); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("two credentials: %.60q", got)
	}
}

// Clients that send a byte now and then are shown out; others do not notice
// them.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start("HTTP_READ_TIMEOUT=1s")
	var conns []net.Conn
	for range 100 {
		c, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		conns = append(conns, c)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				for _, c := range conns {
					c.Write([]byte("x"))
				}
			}
		}
	}()
	began := time.Now()
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(within(10)))
		for buf := make([]byte, 1024); ; {
			if _, err := c.Read(buf); err != nil {
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Fatal("a slow client is still connected")
				}
				break
			}
		}
		if at := time.Now(); at.Sub(began) < within(1) {
			n.Ok(t, "GET", "/health/ready", nil, nil)
		}
	}
	if took := time.Since(began); took > within(5) {
		t.Errorf("it took %v to show them out", took)
	}
}

// How connections end from outside: nothing for who said nothing, a problem for
// half a request, for a body that is too large and was sent whole, and for the
// connection that is one too many.
func TestEndsOfConnections(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start("HTTP_READ_TIMEOUT=1s", "HTTP_MAX_CONNECTIONS=16")
	open := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(within(10)))
		return c
	}
	ends := func(name string, c net.Conn, status, code string) string {
		t.Helper()
		text, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("%s: %v after %q", name, err, text)
		}
		got := string(text)
		if status == "" && got != "" || status != "" && (!strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || !strings.Contains(got, `"code":"`+code+`"`) ||
			!strings.Contains(got, "application/problem+json")) {
			t.Errorf("%s: got %q, want %s %s", name, got, status, code)
		}
		return got
	}
	const head = "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	large := open()
	if _, err := fmt.Fprintf(large, "%sContent-Length: %d\r\n\r\n%s", head, 4<<20, strings.Repeat(" ", 4<<20)); err != nil {
		t.Error(err)
	}
	ends("too large", large, "413", "PAYLOAD_TOO_LARGE")
	silent, half, header := open(), open(), open()
	fmt.Fprint(half, head+"Content-Length: 10\r\n\r\n{")
	fmt.Fprint(header, head)
	ends("silent", silent, "", "")
	ends("half a body", half, "408", "REQUEST_TIMEOUT")
	ends("half a header", header, "408", "REQUEST_TIMEOUT")

	full := func() bool { // whoever holds a connection asks; the test's own client holds some too
		c := open()
		fmt.Fprint(c, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, line); err != nil {
			t.Fatal(err)
		}
		return string(line) == "HTTP/1.1 503"
	}
	held := 0
	for ; !full(); held++ {
		if held > 16 {
			t.Fatal("more connections than may be open are served")
		}
	}
	if held < 8 {
		t.Errorf("only %d connections were served", held)
	}
	if got := ends("one too many", open(), "503", "OVERLOADED"); !strings.Contains(strings.ToLower(got), "\r\nretry-after: 1\r\n") {
		t.Errorf("no Retry-After: %s", got)
	}
}

// One address has as many connections as the operator allows it, others theirs.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start("HTTP_MAX_CONNECTIONS_PER_IP=2")
	ask := func(ip string) string {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		c, err := d.Dial("tcp", strings.TrimPrefix(n.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(within(10)))
		fmt.Fprint(c, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, line); err != nil {
			t.Fatal(err)
		}
		return string(line[len("HTTP/1.1 "):])
	}
	for _, c := range []struct{ ip, want string }{{"127.0.0.2", "200"}, {"127.0.0.2", "200"}, {"127.0.0.2", "503"}, {"127.0.0.3", "200"}} {
		if got := ask(c.ip); got != c.want {
			t.Errorf("from %s: %s, want %s", c.ip, got, c.want)
		}
	}
}

// Who does not exist, who has another password, who is not active: one answer
// (D-AUTH-01, D-GEN-14).
func TestOneAnswerToWrongLogins(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		active, passive := s.AddUser("user"), s.AddUser("user")
		s.Exec("UPDATE users SET status = 'passive' WHERE id = $1", passive.ID)
		wrong := func(body map[string]string) string {
			t.Helper()
			return alike(n.Do(t, "POST", "/auth/login", body, nil).Is(t, 401, "INVALID_CREDENTIALS"))
		}
		want := wrong(map[string]string{"email": active.Mail, "password": "not-the-password"})
		for name, body := range map[string]map[string]string{
			"phone, wrong password": {"countryCode": active.Country, "phoneNumber": active.Phone, "password": "not-the-password"},
			"unknown mail":          {"email": "nobody@example.test", "password": "not-the-password"},
			"unknown phone":         {"countryCode": "90", "phoneNumber": "5329999999", "password": "not-the-password"},
			"not active":            {"email": passive.Mail, "password": passive.Password},
			"short password":        {"email": active.Mail, "password": "x"},
		} {
			if got := wrong(body); got != want {
				t.Errorf("%s:\n%s\nand a wrong password:\n%s", name, got, want)
			}
		}
	})
}

// The pages of development mode answer this machine alone, and no page of
// another origin reads them through its browser.
func TestDevelopmentPages(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	n.Login(t, s.Seeded("user"))
	port := n.URL[strings.LastIndex(n.URL, ":"):]
	for _, path := range []string{"/", "/dev/outbox/page", "/dev/outbox", "/dev/service", "/dev/outbox?to=%2B905320000002"} {
		for _, host := range []string{"127.0.0.1" + port, "localhost" + port, "LOCALHOST", "[::1]" + port, "127.8.9.1"} {
			n.Ok(t, "GET", path, nil, blackbox.Headers{"Host": host})
		}
		for _, host := range []string{"evil.example.test", "127.0.0.1.evil.test" + port, "localhost.evil.test", "10.0.0.1" + port, "0.0.0.0" + port, "[::]", "127.0.0.1@evil.test"} {
			if a := n.Do(t, "GET", path, nil, blackbox.Headers{"Host": host}); a.Status != 403 && a.Status != 400 || bytes.Contains(a.Body, []byte(`"code":"0`)) {
				t.Errorf("%s for the host %s: %s", path, host, a)
			}
		}
		for _, site := range []string{"cross-site", "same-site", "x"} {
			n.Do(t, "GET", path, nil, blackbox.Headers{"Sec-Fetch-Site": site}).Is(t, 403, "FORBIDDEN")
		}
		for _, site := range []string{"same-origin", "none"} {
			n.Ok(t, "GET", path, nil, blackbox.Headers{"Sec-Fetch-Site": site})
		}
		for _, origin := range []string{"http://evil.example.test", "null", "http://127.0.0.1:1", "https://evil.test" + port} {
			n.Do(t, "GET", path, nil, blackbox.Headers{"Origin": origin}).Is(t, 403, "FORBIDDEN")
		}
		n.Ok(t, "GET", path, nil, blackbox.Headers{"Origin": n.URL})
	}
	for _, page := range []string{"/static/index.html", "/static/outbox.html"} { // no way around the checks
		n.Do(t, "GET", page, nil, nil).Is(t, 404, "NOT_FOUND")
	}
	letters := n.Letters(t, "+90 532 000 00 02")
	if len(letters) == 0 || len(letters) != len(n.Letters(t, "0090 5320000002")) || letters[0].Channel != "SMS" || letters[0].To != "+905320000002" ||
		letters[0].Code == "" || !strings.Contains(letters[0].Body, letters[0].Code) {
		t.Errorf("letters %+v", letters)
	}
	if all := n.Letters(t, ""); len(all) != 2 {
		t.Errorf("%d letters in all, want SMS and MAIL", len(all))
	}
	if none := n.Do(t, "GET", "/dev/outbox?to=nobody@example.test", nil, nil); string(none.Body) != "[]" {
		t.Errorf("nobody's letters: %s", none)
	}
}

// Messages come in the language that was asked for (D-GEN-16).
func TestLettersInThreeLanguages(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
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
		if !strings.ContainsAny(seen["tr"], "ışğçöü") || !strings.ContainsFunc(seen["ar"], func(r rune) bool { return r >= 0x600 && r < 0x700 }) {
			t.Errorf("letters %v", seen)
		}
	})
}

// Browsers of listed origins may use the service; others may not (D-GEN-20).
func TestCORS(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("HTTP_CORS_ORIGINS=https://app.example.test")
	n := s.Start()
	preflight := func(origin string) blackbox.Answer {
		t.Helper()
		return n.Do(t, "OPTIONS", "/auth/login", nil, blackbox.Headers{"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,p-auth"})
	}
	ok := preflight("https://app.example.test")
	if ok.Status != 204 || ok.Header.Get("Access-Control-Allow-Origin") != "https://app.example.test" || !strings.Contains(strings.ToLower(ok.Header.Get("Access-Control-Allow-Headers")), "p-auth") {
		t.Errorf("a listed origin: %d %v", ok.Status, ok.Header)
	}
	for _, origin := range []string{"https://evil.example.test", "http://app.example.test", "null"} {
		if a := preflight(origin); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", origin, a.Header)
		}
	}
	f := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(s.Seeded("user")), blackbox.Headers{"Origin": "https://app.example.test"}).Is(t, 200, "")
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
