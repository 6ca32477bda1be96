package access

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Messages that a proxy might read differently are refused, and a request that is hidden behind one is not
// served (SEC-31, SEC-34).
func TestAmbiguousFramingIsRefused(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start()
	const hidden = "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	post := func(head, body string) string {
		return "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + head + "\r\n" + body
	}
	for name, c := range map[string]struct{ request, want string }{
		"length and chunks": {post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"+hidden),
			"400"},
		"chunks and length": {post("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "2\r\n{}\r\n0\r\n\r\n"+hidden),
			"400"},
		"two lengths": {post("Content-Length: 2\r\nContent-Length: 5\r\n", "{}"+hidden), "400"},
		"two codings": {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+hidden),
			"400"},
		"odd coding": {post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+hidden), "400"},
		"odd length": {post("Content-Length: +2\r\n", "{}"+hidden), "400"},
		"chunks in HTTP/1.0": {"POST /auth/login HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n0\r\n\r\n" + hidden, "400"},
		"chunk size with a sign": {post("Transfer-Encoding: chunked\r\n", "+2\r\n{}\r\n0\r\n\r\n"+hidden), "400"},
		"no host":                {"GET /health/live HTTP/1.1\r\n\r\n" + hidden, "400"},
		"two hosts":              {"GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + hidden, "400"},
		"NUL in a header":        {"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n" + hidden, "400"},
		"bare LF":                {"GET /health/live HTTP/1.1\nHost: localhost\n\n" + hidden, "400"},
		"folded":                 {"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n" + hidden, "400"},
		"space before the colon": {"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length : 9\r\n\r\n" + hidden,
			"400"},
		"HTTP/1.9": {"GET /health/live HTTP/1.9\r\nHost: localhost\r\n\r\n" + hidden, "400"},
		"no HTTP":  {"hello\r\n\r\n" + hidden, "400"},
		"TLS":      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
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
		"/health/live": "200", "/health/live/": "404", "/HEALTH/live": "404", "//health/live": "404",
		"/health//live": "404", "/./health/live": "404",
		"/x/../health/live": "404", "/%68ealth/live": "404", "/health%2Flive": "404", "/health/live;x=1": "404",
		"/health/live?x=1":             "200",
		"http://localhost/health/live": "200", "health/live": "400", "*": "400", "/health/live#x": "400",
		"/health\\live": "400", "/health/live\x7f": "400",
	} {
		got := n.Raw(t, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") {
			t.Errorf("%s: got %.60q, want %s", target, got, want)
		}
	}
	for method, want := range map[string]string{"TRACE": "405", "CONNECT": "405", "PROPFIND": "405", "get": "405",
		"OPTIONS": "405"} {
		got := n.Raw(t, method+" /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if code := strings.Fields(got + " none none")[1]; code != want && code != "400" {
			t.Errorf("%s: got %.60q, want %s", method, got, want)
		}
	}
	if got := n.Raw(t, strings.Repeat(strings.Replace(hidden, "Connection: close\r\n", "", 1), 3)+hidden); strings.Count(
		got,
		"HTTP/1.1 200 ",
	) != 4 {
		t.Errorf("four requests in a row had %d answers", strings.Count(got, "HTTP/1.1 200 "))
	}
	twice := "GET /auth/sessions HTTP/1.1\r\nHost: localhost\r\nX-Auth: a\r\nX-Auth: b\r\nConnection: close\r\n\r\n"
	if got := n.Raw(t, twice); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("two credentials: %.60q", got)
	}
}

// Clients that send a byte now and then are disconnected, and other clients do not notice them.
func TestSlowClientsAreDisconnected(t *testing.T) {
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
		c.SetReadDeadline(time.Now().Add(blackbox.Within(10)))
		for buf := make([]byte, 1024); ; {
			if _, err := c.Read(buf); err != nil {
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Fatal("a slow client is still connected")
				}
				break
			}
		}
		if at := time.Now(); at.Sub(began) < blackbox.Within(1) {
			n.Ok(t, "GET", "/health/ready", nil, nil)
		}
	}
	if took := time.Since(began); took > blackbox.Within(5) {
		t.Errorf("it took %v to show them out", took)
	}
}

// The service closes a connection without a word if nothing was sent. It answers with a problem to half a
// request, to a body that is too large and complete, and to one connection too many.
func TestConnectionCloseResponses(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start("HTTP_READ_TIMEOUT=2s", "HTTP_MAX_CONNECTIONS=16")
	open := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(blackbox.Within(10)))
		return c
	}
	ends := func(name string, c net.Conn, status, code string) string {
		t.Helper()
		text, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("%s: %v after %q", name, err, text)
		}
		got := string(text)
		if status == "" && got != "" ||
			status != "" && (!strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || !strings.Contains(got, `"code":"`+code+`"`) ||
				!strings.Contains(got, "application/problem+json")) {
			t.Errorf("%s: got %q, want %s %s", name, got, status, code)
		}
		return got
	}
	const head = "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	large := open()
	if _, err := fmt.Fprintf(large, "%sContent-Length: %d\r\n\r\n%s", head, 4<<20,
		strings.Repeat(" ", 4<<20)); err != nil {
		t.Error(err)
	}
	ends("too large", large, "413", "PAYLOAD_TOO_LARGE")
	silent, half, header := open(), open(), open()
	fmt.Fprint(half, head+"Content-Length: 10\r\n\r\n{")
	fmt.Fprint(header, head)
	ends("silent", silent, "", "")
	ends("half a body", half, "408", "REQUEST_TIMEOUT")
	ends("half a header", header, "408", "REQUEST_TIMEOUT")

	full := func() bool { // a connection with a started request is not idle; the test's own client holds some too
		c := open()
		fmt.Fprint(c, "GET /.well-known/jwks.json HTTP/1.1\r\nHost: localhost\r\n\r\nGET")
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
	health := open()
	fmt.Fprint(health, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if text, err := io.ReadAll(health); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200 ") {
		t.Errorf("health behind a full door: %v after %q", err, text)
	}
	if got := ends("one too many", open(), "503", "OVERLOADED"); !strings.Contains(
		strings.ToLower(got),
		"\r\nretry-after: 1\r\n",
	) {
		t.Errorf("no Retry-After: %s", got)
	}
}

// One address has at most the configured number of connections; other addresses are not affected.
func TestConnectionsPerAddressAreLimited(t *testing.T) {
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
		c.SetDeadline(time.Now().Add(blackbox.Within(10)))
		fmt.Fprint(c, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		line := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, line); err != nil {
			t.Fatal(err)
		}
		return string(line[len("HTTP/1.1 "):])
	}
	for _, c := range []struct{ ip, want string }{{"127.0.0.2", "200"}, {"127.0.0.2", "200"}, {"127.0.0.2", "503"},
		{"127.0.0.3", "200"}} {
		if got := ask(c.ip); got != c.want {
			t.Errorf("from %s: %s, want %s", c.ip, got, c.want)
		}
	}
}
