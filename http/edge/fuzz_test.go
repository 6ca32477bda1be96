package edge

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

// pipe is a connection that has sent all it will ever send.
type pipe struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (p *pipe) Read(b []byte) (int, error)     { return p.in.Read(b) }
func (p *pipe) Write(b []byte) (int, error)    { return p.out.Write(b) }
func (*pipe) Close() error                     { return nil }
func (*pipe) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (*pipe) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (*pipe) SetDeadline(time.Time) error      { return nil }
func (*pipe) SetReadDeadline(time.Time) error  { return nil }
func (*pipe) SetWriteDeadline(time.Time) error { return nil }

// everything is a request with a field of each kind.
type everything struct {
	S   *string        `json:"s"`
	B   *bool          `json:"b"`
	N   *int64         `json:"n"`
	ID  *rest.ID       `json:"id"`
	D   *rest.Decimal  `json:"d"`
	T   *rest.Time     `json:"t"`
	J   *rest.JSON     `json:"j"`
	Any any            `json:"any,omitempty"`
	L   []string       `json:"l,omitempty"`
	IDs []rest.ID      `json:"ids,omitempty"`
	M   map[string]int `json:"m,omitempty"`
}

// FuzzRequest: for any bytes, the firewall checked every handler under exactly its own key
// just before it runs (SEC-31). Every answer is well formed and carries the standard headers,
// and none is a server error.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
		"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /a/b?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"text\": \"\\n\"}",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n" +
			"0\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"DELETE /a/%62 HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n\r\n", "GET http://x/a HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /a//b HTTP/1.0\r\n\r\n", "TRACE /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a#x HTTP/1.1\nHost: a\n\n",
		"OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n\r\n",
		"GET /p/5 HTTP/1.1\r\nHost: a\r\nx-request-id: 12345678\r\nprefer: wait=1\r\naccept-language: tr;q=0,en\r\n" +
			"x-forwarded-for: 1.1.1.1,\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	var judged, ran []string
	var unjudged string
	opts := allow()
	opts.CORSOrigins = []string{"https://a.example"}
	opts.TrustedProxies = nil
	opts.Firewall = func(_ context.Context, _ *Request, key string) error {
		judged = append(judged, key)
		return nil
	}
	ranAs := func(key string) error {
		ran = append(ran, key)
		if len(judged) == 0 || judged[len(judged)-1] != key {
			unjudged = key
		}
		return nil
	}
	s, err := New(opts, []rest.Endpoint{
		rest.Get("/a", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (rest.None, error) {
				return rest.None{}, ranAs("GET /a")
			}),
		rest.Get("/a/b", "", rest.NoAuth, func(context.Context, rest.Caller, everything) (rest.None, error) {
			return rest.None{}, ranAs("GET /a/b")
		}),
		rest.Post("/a", "", rest.NoAuth,
			func(_ context.Context, _ rest.Caller, in echoRequest) (rest.Data[echoRequest], error) {
				return rest.Data[echoRequest]{Data: in}, ranAs("POST /a")
			}),
		rest.Delete("/a/b", "", rest.NoAuth, func(context.Context, rest.Caller, everything) (rest.None, error) {
			return rest.None{}, ranAs("DELETE /a/b")
		}),
		rest.Get("/p/{id}", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.ByID) (rest.None, error) {
				return rest.None{}, ranAs("GET /p/{id}")
			}),
	})
	if err != nil {
		f.Fatal(err)
	}
	s.Raw("GET", "/raw", func(c *fiber.Ctx) error { return ranAs("GET /raw") })
	s.App.Handler() // builds the router's tree
	f.Fuzz(func(t *testing.T, text []byte) {
		judged, ran, unjudged = nil, nil, ""
		p := &pipe{in: bytes.NewReader(text)}
		_ = s.App.Server().ServeConn(p)
		if unjudged != "" || len(ran) > len(judged) {
			t.Fatalf("%q ran unjudged: ran %q, judged %q", unjudged, ran, judged)
		}
		r := bufio.NewReader(&p.out)
		for {
			if _, err := r.Peek(1); err == io.EOF {
				return
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("answer: %v of %q", err, p.out.Bytes())
			}
			if resp.StatusCode == http.StatusContinue {
				continue
			}
			if resp.StatusCode >= 500 || resp.Header.Get("X-Request-Id") == "" ||
				resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Server") != "" {
				t.Fatalf("%d %v to %q", resp.StatusCode, resp.Header, text)
			}
			if bytes.Contains(text, []byte("HEAD")) {
				return // its answer has a length and no body: what follows cannot be told apart
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatalf("body: %v", err)
			}
		}
	})
}
