package sms_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
	"castellan/outbound/sms"
)

var clock = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

// call is one request as the gateway received it.
type call struct {
	method, uri, body string
	header            http.Header
}

// gateway is a real HTTP server in this process.
type gateway struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []call
	opened int // connections
	answer http.HandlerFunc
}

func newGateway(t *testing.T, secure bool) *gateway {
	t.Helper()
	g := &gateway{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		storetest.Is(t, err, nil)
		g.mu.Lock()
		g.calls = append(g.calls, call{r.Method, r.URL.RequestURI(), string(body), r.Header})
		answer := g.answer
		g.mu.Unlock()
		answer(w, r)
	}))
	g.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			g.mu.Lock()
			g.opened++
			g.mu.Unlock()
		}
	}
	if secure {
		g.StartTLS()
	} else {
		g.Start()
	}
	t.Cleanup(g.Server.Close)
	return g
}

func (g *gateway) answers(f http.HandlerFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = f
}

func (g *gateway) received() []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]call(nil), g.calls...)
}

func (g *gateway) caFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}
	storetest.Must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file
}

func newSender(t *testing.T, cfg sms.Config) *sms.Sender {
	t.Helper()
	cfg.Now = func() time.Time { return clock }
	s := storetest.Value(sms.New(cfg))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func form(url string) sms.Config {
	return sms.Config{
		URL:    url,
		Method: "POST",
		Format: "form",
		From:   "Castellan", Timeout: 10 * time.Second,
		Fields: map[string]string{"to": "{{to}}", "text": "{{text}}", "sender": "{{from}}", "ref": "x-{{key}}"},
	}
}

func text(s string) message.Rendered {
	return message.Rendered{Channel: message.SMS, To: "+905321234567", Text: s, Code: "012345", Language: "tr"}
}

const key = "01J9.SMS.1"

// checkFailure requires a DeliveryError of a class, without confidential content.
func checkFailure(t *testing.T, err error, permanent bool, part string) *message.DeliveryError {
	t.Helper()
	var d *message.DeliveryError
	if !errors.As(err, &d) || d.Permanent != permanent {
		t.Fatalf("want a delivery error with permanent=%v, got %v", permanent, err)
	}
	storetest.Contains(t, err.Error(), part)
	for _, secret := range []string{"012345", "5321234567", "token=s3cret", "hunter2"} {
		storetest.Lacks(t, err.Error(), secret)
	}
	return d
}

func TestExactRequests(t *testing.T) {
	const awkward = "Kod 012345 & \"ş\" \\ <b>+%\n\u200eسر {{to}}"
	for name, c := range map[string]struct {
		change func(*sms.Config)
		want   call
	}{
		"form": {func(*sms.Config) {}, call{
			method: "POST", uri: "/send?account=7",
			body: "ref=x-01J9.SMS.1&sender=Castellan&text=Kod+012345+%26+%22%C5%9F%22+%5C+%3Cb%3E%2B%25%0A%E2%80%8E%D8%B3%D8" +
				"%B1+%7B%7Bto%7D%7D&to=%2B905321234567",
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Idempotency-Key": {key},
				"User-Agent": {"castellan"}, "Authorization": nil},
		}},
		"json": {func(c *sms.Config) { c.Format = "json"; c.Method = "PUT" }, call{
			method: "PUT", uri: "/send?account=7",
			body: `{"ref":"x-01J9.SMS.1","sender":"Castellan","text":"Kod 012345 & \"ş\" \\ <b>+%\n` +
				"\u200eسر" + ` {{to}}","to":"+905321234567"}`,
			header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}},
		}},
		"json document": {func(c *sms.Config) {
			c.Format, c.Fields = "json", nil
			c.Body = `{"header":"{{from}}","account":12345678901234567890,"test":false,"none":null,` +
				`"messages":[{"no":"{{digits}}","msg":"{{text}}"}]}`
		}, call{
			method: "POST", uri: "/send?account=7",
			body: `{"account":12345678901234567890,"header":"Castellan","messages":[{"msg":"` +
				`Kod 012345 & \"ş\" \\ <b>+%\n` + "\u200eسر" + ` {{to}}","no":"905321234567"}],"none":null,"test":false}`,
			header: http.Header{"Content-Type": {"application/json"}},
		}},
		"twilio": {func(c *sms.Config) {
			c.Preset, c.Fields, c.Username, c.Password, c.From = "twilio", nil, "AC1", "hunter2", "+15005550006"
		}, call{
			method: "POST", uri: "/send?account=7",
			body: "Body=Kod+012345+%26+%22%C5%9F%22+%5C+%3Cb%3E%2B%25%0A%E2%80%8E%D8%B3%D8%B1+%7B%7Bto%7D%7D&From=" +
				"%2B15005550006&To=%2B905321234567",
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"},
				"Authorization": {"Basic QUMxOmh1bnRlcjI="}},
		}},
		"get": {func(c *sms.Config) {
			c.Method = "GET"
			c.Fields = map[string]string{"to": "{{digits}}", "text": "{{text}}"}
		}, call{
			method: "GET", uri: "/send?account=7&text=Kod+012345+%26+%22%C5%9F%22+%5C+%3Cb%3E%2B%25" +
				"%0A%E2%80%8E%D8%B3%D8%B1+%7B%7Bto%7D%7D&to=905321234567",
			header: http.Header{"Content-Type": nil},
		}},
		"headers": {func(c *sms.Config) {
			c.Headers = map[string]string{"authorization": "Bearer abc", "X-To": "{{digits}}/{{key}}", "user-agent": "other"}
			c.Fields = map[string]string{"a": "{{to}}{{text}}"}
		}, call{
			method: "POST", uri: "/send?account=7",
			body: "a=%2B905321234567Kod+012345+%26+%22%C5%9F%22+%5C+%3Cb%3E%2B%25%0A%E2%80%8E%D8%B3%D8%B1+%7B%7Bto%7D%7D",
			header: http.Header{"Authorization": {"Bearer abc"}, "X-To": {"905321234567/" + key}, "User-Agent": {"other"},
				"Idempotency-Key": {key}},
		}},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/secure=%v", name, secure), func(t *testing.T) {
				g := newGateway(t, secure)
				cfg := form(g.URL + "/send?account=7")
				c.change(&cfg)
				if secure {
					cfg.CAFile = g.caFile(t)
				}
				storetest.Must(t, newSender(t, cfg).Send(t.Context(), key, text(awkward)))
				calls := g.received()
				if len(calls) != 1 {
					t.Fatalf("%d calls", len(calls))
				}
				got := calls[0]
				if got.method != c.want.method || got.uri != c.want.uri {
					t.Errorf("%s %s, want %s %s", got.method, got.uri, c.want.method, c.want.uri)
				}
				storetest.Equal(t, got.body, c.want.body, "body")
				if strings.HasPrefix(got.body, "{") && !json.Valid([]byte(got.body)) {
					t.Error("the body is not JSON")
				}
				for name, want := range c.want.header {
					storetest.Equal(t, fmt.Sprint(got.header[name]), fmt.Sprint(want), name)
				}
			})
		}
	}
}

func TestStatusDecides(t *testing.T) {
	g := newGateway(t, false)
	s := newSender(t, form(g.URL))
	for _, c := range []struct {
		code       int
		retryAfter string
		class      string // ok, permanent, temporary
		wait       time.Duration
	}{
		{200, "", "ok", 0}, {202, "", "ok", 0}, {204, "", "ok", 0},
		{302, "", "permanent", 0}, {307, "", "permanent", 0},
		{400, "7", "permanent", 0}, {401, "", "permanent", 0}, {404, "", "permanent", 0}, {409, "", "permanent", 0}, {422, "",
			"permanent", 0},
		{408, "", "temporary", 0}, {425, "3", "temporary", 3 * time.Second}, {429, "120", "temporary", 2 * time.Minute},
		{429, "2000000000", "temporary", 24 * time.Hour},
		{500, "", "temporary", 0}, {502, "", "temporary", 0}, {503, "9", "temporary", 9 * time.Second},
	} {
		g.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", g.URL+"/elsewhere")
			if c.retryAfter != "" {
				w.Header().Set("Retry-After", c.retryAfter)
			}
			w.WriteHeader(c.code)
			if c.code != 204 {
				io.WriteString(w, "refused: 012345 to +905321234567")
			}
		})
		before := len(g.received())
		err := s.Send(t.Context(), key, text("012345"))
		storetest.Equal(t, len(g.received())-before, 1, c.code, "calls")
		if c.class == "ok" {
			storetest.Is(t, err, nil, c.code)
			continue
		}
		d := checkFailure(t, err, c.class == "permanent", fmt.Sprint("gateway answered ", c.code))
		storetest.Equal(t, d.RetryAfter, c.wait, c.code, "with", c.retryAfter, "wait")
	}

	cfg := form(g.URL)
	cfg.SuccessCodes = []int{200, 202}
	s = newSender(t, cfg)
	for code, ok := range map[int]bool{200: true, 202: true, 201: false} {
		g.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		if err := s.Send(t.Context(), key, text("x")); (err == nil) != ok {
			t.Errorf("%d with chosen codes: %v", code, err)
		} else if err != nil {
			checkFailure(t, err, true, "201")
		}
	}
}

func TestMessagesThatCannotBeSent(t *testing.T) {
	g := newGateway(t, false)
	s := newSender(t, form(g.URL))
	for name, change := range map[string]func(*message.Rendered){
		"channel":    func(m *message.Rendered) { m.Channel = message.MAIL },
		"no text":    func(m *message.Rendered) { m.Text = "" },
		"no number":  func(m *message.Rendered) { m.To = "" },
		"no plus":    func(m *message.Rendered) { m.To = "905321234567" },
		"letters":    func(m *message.Rendered) { m.To = "+90532x234567" },
		"two":        func(m *message.Rendered) { m.To = "+905321234567,+905321234568" },
		"line end":   func(m *message.Rendered) { m.To = "+905321234567\r\n" },
		"leading 0":  func(m *message.Rendered) { m.To = "+005321234567" },
		"too long":   func(m *message.Rendered) { m.To = "+9053212345678901" },
		"other nums": func(m *message.Rendered) { m.To = "+٩٠٥٣٢١٢٣٤" },
	} {
		m := text("012345")
		change(&m)
		t.Run(name, func(t *testing.T) { checkFailure(t, s.Send(t.Context(), key, m), true, "sms: ") })
	}
	for _, k := range []string{"", "a\r\nX: y", "é"} {
		checkFailure(t, s.Send(t.Context(), k, text("x")), true, "malformed message key")
	}
	storetest.Equal(t, len(g.received()), 0, "something was sent")
}
