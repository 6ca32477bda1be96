package edge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// listen serves s on a real socket, because framing is what this file is about.
func listen(t testing.TB, s *Server) string {
	t.Helper()
	ln := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		storetest.Is(t, s.App.Shutdown(), nil)
		<-done
	})
	return ln.Addr().String()
}

// wire sends bytes and reads answers until the server closes the connection, or
// until want of them have come.
func wire(t testing.TB, addr, text string, want int) (answers []answer, closed bool) {
	t.Helper()
	c := storetest.Value(net.Dial("tcp", addr))(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	storetest.Must(t, storetest.Err(io.WriteString(c, text)))
	r := bufio.NewReader(c)
	for len(answers) < want {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers, true
		}
		body, _ := io.ReadAll(resp.Body)
		answers = append(answers, answer{resp.StatusCode, resp.Header, string(body)})
		closed = resp.Close
	}
	return answers, closed
}

// TestFraming: every ambiguous message is refused in the one error shape and its
// connection closed, so that what follows it is never taken for a request
// (SEC-34). Each case is followed by a victim that must not run after a refusal.
func TestFraming(t *testing.T) {
	var ran atomic.Int64
	opts := allow()
	s := serve(t, opts,
		rest.Get("/x", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (rest.None, error) {
				ran.Add(1)
				return rest.None{}, nil
			}),
		rest.Post("/x", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (rest.None, error) {
				ran.Add(1)
				return rest.None{}, nil
			}))
	addr := listen(t, s)
	const victim = "GET /x HTTP/1.1\r\nHost: victim\r\n\r\n"
	const head = "Host: a\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, text string
		status     int
	}{
		{"plain", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		{"body", "POST /x HTTP/1.1\r\n" + head + "Content-Length: 2\r\n\r\n{}", 200},
		{"chunked", "POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		{"expect", "POST /x HTTP/1.1\r\n" + head + "Expect: x\r\nContent-Length: 2\r\n\r\n{}", 200},
		{"length and chunked", "POST /x HTTP/1.1\r\n" + head +
			"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"length and empty chunks", "POST /x HTTP/1.1\r\n" + head +
			"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"chunked, then a length", "POST /x HTTP/1.1\r\n" + head +
			"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n", 400},
		{"chunked and length", "POST /x HTTP/1.1\r\n" + head +
			"Transfer-Encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"two lengths", "POST /x HTTP/1.1\r\n" + head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"signed length", "POST /x HTTP/1.1\r\n" + head + "Content-Length: +2\r\n\r\n{}", 400},
		{"length list", "POST /x HTTP/1.1\r\n" + head + "Content-Length: 2, 2\r\n\r\n{}", 400},
		{"two codings", "POST /x HTTP/1.1\r\n" + head +
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"coding list", "POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"unknown coding", "POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"coding with a space before the colon", "POST /x HTTP/1.1\r\n" + head +
			"Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"chunked in HTTP/1.0",
			"POST /x HTTP/1.0\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"chunk extension with a bare LF", "POST /x HTTP/1.1\r\n" + head +
			"Transfer-Encoding: chunked\r\n\r\n2;a\n{}\r\n0\r\n\r\n", 400},
		{"bad chunk size", "POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", 400},
		{"no host", "GET /x HTTP/1.1\r\n\r\n", 400},
		{"two hosts", "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		{"NUL in a value", "GET /x HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400},
		{"CR in a value", "GET /x HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
		{"CR in the target", "GET /x\r HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"space in a name", "GET /x HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", 400},
		{"space in the first name", "GET /x HTTP/1.1\r\nX Y: b\r\nHost: a\r\n\r\n", 400},
		{"separator in a name", "GET /x HTTP/1.1\r\nHost: a\r\nX(Y): b\r\n\r\n", 400},
		{"every byte of a name", "GET /x HTTP/1.1\r\nHost: a\r\nX!#$%&'*+-.^_`|~9: b\r\n\r\n", 200},
		{"coding with a space in the name", "POST /x HTTP/1.1\r\n" + head +
			"Transfer Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"length with a space in the name", "POST /x HTTP/1.1\r\n" + head + "Content Length: 2\r\n\r\n{}", 400},
		{"coding identity", "GET /x HTTP/1.1\r\n" + head + "Transfer-Encoding: identity\r\n\r\n", 400},
		{"coding identity, in capitals", "POST /x HTTP/1.1\r\n" + head + "TRANSFER-ENCODING:Identity \r\n\r\n", 400},
		{"coding identity and a length", "POST /x HTTP/1.1\r\n" + head +
			"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"no coding", "POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding:\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"chunked twice",
			"POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		{"chunked, in capitals",
			"POST /x HTTP/1.1\r\n" + head + "transfer-encoding:\t Chunked \r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		{"no colon", "GET /x HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", 400},
		{"folded line", "GET /x HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400},
		{"bare LF", "GET /x HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
		{"bare LF at the end", "GET /x HTTP/1.1\r\nHost: a\r\nX: b\r\n\n", 400},
		{"HTTP/1.9", "GET /x HTTP/1.9\r\nHost: a\r\n\r\n", 400},
		{"HTTP/2.0", "GET /x HTTP/2.0\r\nHost: a\r\n\r\n", 400},
		{"lower case version", "GET /x http/1.1\r\nHost: a\r\n\r\n", 400},
		{"no version", "GET /x\r\nHost: a\r\n\r\n", 400},
		{"absolute form", "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		{"authority form", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"fragment", "GET /x#f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"fragment in the query", "GET /x?a#f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"backslash", "GET /a\\..\\x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"tab in the target", "GET /x\t HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"bytes beyond ASCII in the path", "GET /x\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"empty target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"method with a separator", "GE(T /x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		{"header too large", "GET /x HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", headerLimit) + "\r\n\r\n", 431},
		{"target too long", "GET /x?" + strings.Repeat("x", maxTarget) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431},
		{"body too large", "POST /x HTTP/1.1\r\n" + head + "Content-Length: 1048577\r\n\r\n{}", 413},
		{"chunked body too large", "POST /x HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n100001\r\n" +
			strings.Repeat(" ", 16<<10), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran.Store(0)
			answers, closed := wire(t, addr, c.text+victim, 2)
			if len(answers) == 0 || answers[0].status != c.status {
				t.Fatalf("answers %+v, want %d", answers, c.status)
			}
			if c.status == 200 {
				if ran.Load() != 2 || len(answers) != 2 {
					t.Errorf("ran %d of 2 requests", ran.Load())
				}
				return
			}
			a := answers[0]
			if a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("X-Request-Id") == "" ||
				a.header.Get("Cache-Control") != "no-store" ||
				!strings.Contains(a.body, a.header.Get("X-Request-Id")) || a.header.Get("Server") != "" {
				t.Errorf("shape: %v %s", a.header, a.body)
			}
			for _, leak := range []string{"fasthttp", "buffer", "victim", "nonsense", "Host"} {
				storetest.Lacks(t, a.body, leak, "refusal")
			}
			wellFramed := map[string]bool{"authority form": true, "asterisk": true, "fragment": true,
				"fragment in the query": true,
				"backslash":             true, "tab in the target": true, "bytes beyond ASCII in the path": true,
				"target too long": true}
			if wellFramed[c.name] { // what follows is another request
				if len(answers) == 2 && ran.Load() != 1 || len(answers) == 1 && ran.Load() != 0 {
					t.Errorf("%d answers, ran %d", len(answers), ran.Load())
				}
			} else if len(answers) != 1 || !closed || ran.Load() != 0 {
				t.Errorf("the connection goes on: %d answers, ran %d", len(answers), ran.Load())
			}
		})
	}
}

// TestNoBleed: strings kept from one request are never changed by the next one
// on the same connection: one user's id must not become another's (REL-18).
func TestNoBleed(t *testing.T) {
	var kept []rest.Caller
	var texts []string
	s := serve(t, allow(), rest.Get("/x/{id}", "", rest.User, func(_ context.Context, who rest.Caller, in struct {
		ID   string  `json:"id"`
		Q    string  `json:"q"`
		Body *string `json:"body"`
	}) (rest.None, error) {
		kept = append(kept, who)
		texts = append(texts, in.ID, in.Q, *in.Body)
		return rest.None{}, nil
	}))
	addr := listen(t, s)
	const n = 200
	var all strings.Builder
	for i := range n {
		id := fmt.Sprintf("user-%04d", i)
		body := `{"body":"` + id + `"}`
		fmt.Fprintf(&all, "GET /x/%s?q=%s HTTP/1.1\r\nHost: a\r\nx-auth: %s\r\ndevice-brand: %s\r\ndevice-model: %s\r\n"+
			"device-desc: %s\r\nuser-agent: %s\r\n"+
			"device-signature: %s\r\notp: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
			"\r\n%s",
			id, id, id, id, id, id, id, id, id, len(body), body)
	}
	if answers, _ := wire(t, addr, all.String(), n); len(answers) != n {
		t.Fatalf("%d answers", len(answers))
	}
	for i, who := range kept {
		id := fmt.Sprintf("user-%04d", i)
		for _, got := range []string{who.UserID, who.Device.Brand, who.Device.Model, who.Device.Description,
			who.Device.UserAgent, who.DeviceSignature,
			who.OTP, strings.TrimPrefix(who.Path, "/x/"), strings.TrimPrefix(who.RawQuery,
				"q="), texts[3*i], texts[3*i+1], texts[3*i+2]} {
			if got != id {
				t.Fatalf("%q became %q", id, got)
			}
		}
	}
}

// TestCORSOfProtocol: a page of an allowed origin can read what the edge, the
// listener and the library refuse, too (D-GEN-20).
func TestCORSOfProtocol(t *testing.T) {
	const mine = "https://app.example.com"
	for _, allowed := range [][]string{{mine, "https://b.example.com"}, {mine}, {"*"}} {
		opts := allow()
		opts.CORSOrigins = allowed
		s := serve(t, opts, rest.Post("/x", "", rest.NoAuth, nothing))
		s.App.Server().ReadTimeout = 200 * time.Millisecond
		addr := listen(t, s)
		opts.MaxConnections = 1
		release, held := hold(t)
		full := listen(t, serve(t, opts, held, rest.Post("/x", "", rest.NoAuth, nothing)))
		busy := dial(t, full)
		io.WriteString(busy, holdRequest)
		release.wait(t)
		opts.MaxConnections, opts.Draining = 0, func() bool { return true }
		draining := listen(t, serve(t, opts, rest.Post("/x", "", rest.NoAuth, nothing)))
		for _, c := range []struct {
			name, addr, line, rest string
			status                 int
		}{
			{"framing", addr, "POST /x HTTP/1.1", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
			{"target", addr, "POST /x#f HTTP/1.1", "Connection: close\r\n\r\n", 400},
			{"bad chunk", addr, "POST /x HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\n0x2\r\n", 400},
			{"long body", addr, "POST /x HTTP/1.1", "Content-Length: 1048577\r\n\r\n{}", 413},
			{"long target", addr, "POST /" + strings.Repeat("x", maxTarget) + " HTTP/1.1", "Connection: close\r\n\r\n", 431},
			{"slow body", addr, "POST /x HTTP/1.1", "Content-Length: 2\r\n\r\n{", 408},
			{"draining", draining, "POST /x HTTP/1.1", "\r\n", 503},
			{"too many connections", full, "POST /x HTTP/1.1", "\r\n", 503},
			{"two lengths", addr, "POST /x HTTP/1.1", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
			{"long header", addr, "POST /x HTTP/1.1", "X: " + strings.Repeat("x", headerLimit) + "\r\n\r\n", 431},
			{"slow header", addr, "POST /x HTTP/1.1", "", 408},
		} {
			for _, origin := range []string{mine, "https://evil.example"} {
				answers, closed := wire(t, c.addr, c.line+"\r\nHost: a\r\nOrigin: "+origin+"\r\n"+c.rest, 1)
				if len(answers) != 1 || !closed || answers[0].status != c.status {
					t.Fatalf("%s: %+v, closed %v", c.name, answers, closed)
				}
				h, want := answers[0].header, ""
				switch {
				case allowed[0] == "*":
					want = "*"
				case origin == mine:
					want = mine
				}
				if got := h.Get("Access-Control-Allow-Origin"); got != want ||
					(want != "") != (h.Get("Access-Control-Expose-Headers") == exposedHeaders) ||
					(h.Get("Vary") == "Origin") != (want != "*") {
					t.Errorf("%s, allowed %v, from %s: %v", c.name, allowed, origin, h)
				}
			}
		}
		close(release.end)
	}
}

func TestCORS(t *testing.T) {
	opts := allow()
	opts.CORSOrigins = []string{"https://app.example.com", "http://localhost:3000"}
	opts.Firewall = func(_ context.Context, r *Request, _ string) error {
		if r.Caller.Method == "OPTIONS" {
			t.Error("a preflight reached the firewall")
		}
		return nil
	}
	s := serve(t, opts, rest.Post("/x", "", rest.User, nothing))
	pre := do(t, s, "OPTIONS", "/x", "", "origin: https://app.example.com", "access-control-request-method: POST")
	if pre.status != 204 || pre.body != "" || pre.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
		pre.header.Get("Access-Control-Allow-Methods") != allowedMethods ||
		!strings.Contains(pre.header.Get("Access-Control-Allow-Headers"), "device_signature") ||
		!strings.HasPrefix(pre.header.Get("Vary"), "Origin") || pre.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d %v %s", pre.status, pre.header, pre.body)
	}
	a := do(t, s, "POST", "/x", "", "origin: http://localhost:3000", "x-auth: u")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" ||
		a.header.Get("Vary") != "Origin" ||
		a.header.Get("Access-Control-Expose-Headers") != exposedHeaders {
		t.Errorf("request: %d %v", a.status, a.header)
	}
	if a := do(t, s, "POST", "/x", "", "origin: http://localhost:3000"); a.status != 401 ||
		a.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("a refusal that a page cannot read: %v", a.header)
	}
	for _, origin := range []string{"https://evil.example", "https://app.example.com.evil.example", "null",
		"https://APP.example.com"} {
		for _, method := range []string{"OPTIONS", "POST"} {
			a := do(t, s, method, "/x", "", "origin: "+origin, "access-control-request-method: POST", "x-auth: u")
			if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Vary") == "" {
				t.Errorf("%s from %s: %v", method, origin, a.header)
			}
		}
	}
	if !s.AllowsOrigin("https://app.example.com") || s.AllowsOrigin("https://evil.example") {
		t.Error("AllowsOrigin")
	}
	opts.CORSOrigins = []string{"*"}
	s = serve(t, opts, rest.Post("/x", "", rest.User, nothing))
	if a := do(t, s, "POST", "/x", "", "origin: https://any.example",
		"x-auth: u"); a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("any origin: %v", a.header)
	}
	opts.CORSOrigins, opts.CORSCredentials = []string{"https://a.example"}, true
	s = serve(t, opts, rest.Post("/x", "", rest.User, nothing))
	if a := do(t, s, "POST", "/x", "", "origin: https://a.example",
		"x-auth: u"); a.header.Get("Access-Control-Allow-Credentials") != "true" {
		t.Errorf("credentials: %v", a.header)
	}
	if a := do(t, serve(t, allow(), rest.Post("/x", "", rest.User, nothing)), "OPTIONS", "/x", "",
		"origin: https://a.example", "access-control-request-method: POST"); a.status != 405 {
		t.Errorf("without origins a preflight is a method like any other: %d", a.status)
	}
}
