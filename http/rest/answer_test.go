package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/fault"

	"github.com/gofiber/fiber/v2"
)

func TestAnswers(t *testing.T) {
	type record struct {
		HTML string  `json:"html"`
		Amt  Decimal `json:"amt"`
	}
	s := serve(t, allow(),
		Get("/none", "", NoAuth, nothing),
		Get("/list", "", NoAuth, func(context.Context, Caller, None) ([]record, error) { return nil, nil }),
		Get("/record", "", NoAuth, func(context.Context, Caller, None) (record, error) { return record{"<b>&", "1.50"}, nil }),
		Get("/data", "", NoAuth, func(context.Context, Caller, None) (Data[[]record], error) { return Data[[]record]{}, nil }),
		Get("/reply", "", NoAuth, func(context.Context, Caller, None) (Reply[Data[int]], error) {
			return Reply[Data[int]]{Body: Data[int]{5}, Headers: []Header{{"link", "<x>"}, {"cache-control", "public"}}}, nil
		}),
		Get("/replies", "", NoAuth, func(context.Context, Caller, None) (Reply[[]record], error) { return Reply[[]record]{}, nil }),
		Get("/bytes", "", NoAuth, func(context.Context, Caller, None) (json.RawMessage, error) { return nil, nil }),
		Get("/raw", "", NoAuth, func(context.Context, Caller, None) (Reply[None], error) {
			return Reply[None]{Raw: []byte{1, 0, 2}, ContentType: "image/png"}, nil
		}).Binary("image/png"),
		Get("/empty", "", NoAuth, func(context.Context, Caller, None) (Reply[None], error) { return Reply[None]{Raw: []byte{}}, nil }),
		Get("/headed", "", NoAuth, func(context.Context, Caller, None) (headed, error) { return headed{A: 1}, nil }),
		Get("/broken", "", NoAuth, func(context.Context, Caller, None) (any, error) { return func() {}, nil }),
		Get("/things/{id}", "", NoAuth, func(_ context.Context, _ Caller, in base) (base, error) { return in, nil }),
	)
	for _, c := range []struct {
		target, body, contentType string
		status                    int
	}{
		{"/none", `{}`, "application/json", 200},
		{"/list", `[]`, "application/json", 200},
		{"/record", `{"html":"<b>&","amt":1.5}`, "application/json", 200},
		{"/data", `{"data":[]}`, "application/json", 200},
		{"/reply", `{"data":5}`, "application/json", 200},
		{"/replies", `[]`, "application/json", 200},
		{"/bytes", `null`, "application/json", 200},
		{"/raw", "\x01\x00\x02", "image/png", 200},
		{"/empty", "", "application/octet-stream", 200},
		{"/headed", `{"a":1}`, "application/json", 200},
		{"/things/7", `{"id":7}`, "application/json", 200},
	} {
		a := do(t, s, "GET", c.target, "")
		if a.status != c.status || a.body != c.body || a.header.Get("Content-Type") != c.contentType {
			t.Errorf("%s = %d %q %q", c.target, a.status, a.header.Get("Content-Type"), a.body)
		}
		head := do(t, s, "HEAD", c.target, "")
		if head.status != c.status || head.body != "" {
			t.Errorf("HEAD %s = %d %q", c.target, head.status, head.body)
		}
	}
	if a := do(t, s, "GET", "/reply", ""); a.header.Get("Link") != "<x>" || a.header.Get("Cache-Control") != "public" {
		t.Errorf("headers of a reply: %v", a.header)
	}
	if a := do(t, s, "GET", "/headed", ""); a.header.Get("P-Auth") != "token" {
		t.Errorf("headers of an answer: %v", a.header)
	}
	if a := do(t, s, "GET", "/broken", ""); a.status != 500 || a.code() != "INTERNAL" || strings.Contains(a.body, "func") {
		t.Errorf("an answer that cannot be encoded: %d %s", a.status, a.body)
	}
	if a := do(t, s, "GET", "/things/x", ""); a.status != 400 || !strings.Contains(a.body, `"field":"id"`) {
		t.Errorf("a faulty path parameter: %d %s", a.status, a.body)
	}
}

type headed struct {
	A int `json:"a"`
}

func (headed) ResponseHeaders() []Header { return []Header{{"p-auth", "token"}} }

// TestStandardHeaders: what every answer carries, refusals included (SEC-39).
func TestStandardHeaders(t *testing.T) {
	opts := allow()
	opts.PublicURL = "https://id.example.com"
	s := serve(t, opts, Get("/ok", "", NoAuth, nothing), Get("/closed", "", User, nothing), Get("/broken", "", NoAuth, fails(errors.New("x"))),
		Get("/panic", "", NoAuth, func(context.Context, Caller, None) (None, error) { panic("x") }))
	s.Raw("GET", "/page", func(c *fiber.Ctx) error { return c.SendString("page") })
	for target, status := range map[string]int{"/ok": 200, "/closed": 401, "/nowhere": 404, "/broken": 500, "/panic": 500, "/page": 200, "//ok": 404, "/ok%2f": 404} {
		a := do(t, s, "GET", target, "", "x-request-id: client-made.id_1")
		want := map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Api-Version": "1",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"Strict-Transport-Security": "max-age=31536000; includeSubDomains", "X-Request-Id": "client-made.id_1", "Server": "", "Vary": ""}
		for name, value := range want {
			if got := a.header.Get(name); got != value {
				t.Errorf("%s: %s = %q, want %q", target, name, got, value)
			}
		}
		if a.status != status {
			t.Errorf("%s = %d, want %d", target, a.status, status)
		}
		if status >= 400 && !strings.HasSuffix(a.body, `"requestId":"client-made.id_1"}`) {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	opts.PublicURL = "http://localhost"
	if a := do(t, serve(t, opts), "GET", "/", ""); a.header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS without https")
	}
	for _, id := range []string{"short", strings.Repeat("x", 65), "with space", "ünïcode-id", `quo"te-id`} {
		a := do(t, s, "GET", "/ok", "", "x-request-id: "+id)
		if got := a.header.Get("X-Request-Id"); got == id || len(got) != 26 {
			t.Errorf("request id %q became %q", id, got)
		}
	}
}

// TestProblem: every code of the registry has its status and shape (D-GEN-09).
func TestProblem(t *testing.T) {
	two := 2
	for code, e := range registry {
		f := &fault.Error{Code: code, Message: "said", AttemptsLeft: &two, RetryAfter: 1500 * time.Millisecond}
		s := serve(t, allow(), Get("/x", "", NoAuth, fails(fmt.Errorf("wrapped: %w", f))))
		a := do(t, s, "GET", "/x", "", "accept-language: tr")
		var p map[string]any
		if err := json.Unmarshal([]byte(a.body), &p); err != nil {
			t.Fatal(err)
		}
		if code == fault.Internal {
			if a.status != 500 || p["detail"] == "said" {
				t.Errorf("%s: %s", code, a.body)
			}
			continue
		}
		if a.status != e.status || p["status"] != float64(e.status) || p["code"] != string(code) || p["title"] != e.en || p["detail"] != "said" ||
			p["message"] != e.tr || p["attemptsLeft"] != 2.0 || p["requestId"] != a.header.Get("X-Request-Id") ||
			a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Retry-After") != "2" {
			t.Errorf("%s: %d %v %s", code, a.status, a.header, a.body)
		}
		if want := "urn:castellan:problem:" + strings.ToLower(strings.ReplaceAll(string(code), "_", "-")); p["type"] != want {
			t.Errorf("type %v, want %s", p["type"], want)
		}
		if e.en == "" || e.tr == "" || e.ar == "" {
			t.Errorf("%s lacks a title", code)
		}
	}
}

func TestProblemDetails(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		has    []string
		hasNot []string
		retry  string
	}{
		{"fields", fault.All([]fault.Problem{{Field: "a", Message: "is required"}, {Field: "b", Message: "is odd"}}), 400,
			[]string{`"field":"a","errors":[{"field":"a","message":"is required"},{"field":"b","message":"is odd"}]`}, []string{"attemptsLeft"}, ""},
		{"field alone", &fault.Error{Code: fault.RecordAlreadyExist, Message: "taken", Field: "name"}, 409,
			[]string{`"field":"name","errors":[{"field":"name","message":"taken"}]`}, nil, ""},
		{"no field", fault.New(fault.InvalidState, "no"), 409, nil, []string{"field", "errors"}, ""},
		{"no text", &fault.Error{Code: fault.RecordNotFound}, 404, []string{`"detail":"Record not found"`}, nil, ""},
		{"retry without a time", fault.New(fault.RateLimited, "slow"), 429, nil, nil, "1"},
		{"retry rounded up", fault.New(fault.RateLimited, "slow").After(59*time.Second + time.Nanosecond), 429, nil, nil, "60"},
		{"retry of another code", fault.New(fault.ChallengeNotCompleted, "wait").After(time.Second), 409, nil, nil, "1"},
		{"unknown code", fault.New("NEW_CODE", "secret"), 500, []string{`"code":"INTERNAL"`}, []string{"secret", "NEW_CODE"}, ""},
		{"internal", errors.New(`pq: relation "users" /srv/app/x.go:12`), 500, []string{`"code":"INTERNAL"`}, []string{"pq", "users", ".go"}, ""},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), 503, []string{`"code":"UNAVAILABLE"`}, []string{"query"}, "1"},
		{"cancelled", context.Canceled, 503, []string{`"code":"UNAVAILABLE"`}, nil, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := do(t, serve(t, allow(), Get("/x", "", NoAuth, fails(c.err))), "GET", "/x", "")
			if a.status != c.status || a.header.Get("Retry-After") != c.retry {
				t.Errorf("%d, Retry-After %q: %s", a.status, a.header.Get("Retry-After"), a.body)
			}
			for _, part := range c.has {
				if !strings.Contains(a.body, part) {
					t.Errorf("%s lacks %s", a.body, part)
				}
			}
			for _, part := range c.hasNot {
				if strings.Contains(a.body, part) {
					t.Errorf("%s has %s", a.body, part)
				}
			}
		})
	}
}
