package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

func TestAnswers(t *testing.T) {
	type record struct {
		HTML string       `json:"html"`
		Amt  rest.Decimal `json:"amt"`
	}
	s := serve(t, allow(),
		rest.Get("/none", "", rest.NoAuth, nothing),
		rest.Get("/list", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) ([]record, error) {
			return nil, nil
		}),
		rest.Get("/record", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (record, error) {
				return record{"<b>&", "1.50"}, nil
			}),
		rest.Get("/data", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.Data[[]record], error) {
			return rest.Data[[]record]{}, nil
		}),
		rest.Get("/reply", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (rest.Reply[rest.Data[int]], error) {
				return rest.Reply[rest.Data[int]]{Body: rest.Data[int]{Data: 5},
					Headers: []rest.Header{{Name: "link", Value: "<x>"}, {Name: "cache-control", Value: "public"}}}, nil
			}),
		rest.Get("/replies", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.Reply[[]record], error) {
			return rest.Reply[[]record]{}, nil
		}),
		rest.Get("/bytes", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (json.RawMessage, error) {
				return nil, nil
			}),
		rest.Get("/raw", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.Reply[rest.None], error) {
			return rest.Reply[rest.None]{Raw: []byte{1, 0, 2}, ContentType: "image/png"}, nil
		}).Binary("image/png"),
		rest.Get("/empty", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.Reply[rest.None], error) {
			return rest.Reply[rest.None]{Raw: []byte{}}, nil
		}),
		rest.Get("/headed", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.None) (headed, error) {
				return headed{A: 1}, nil
			}),
		rest.Get("/broken", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (any, error) {
			return func() {}, nil
		}),
		rest.Get("/things/{id}", "", rest.NoAuth, func(_ context.Context, _ rest.Caller, in rest.ByID) (rest.ByID, error) {
			return in, nil
		}),
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
	storetest.Equal(t, do(t, s, "GET", "/headed", "").header.Get("P-Auth"), "token", "header of an answer")
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

func (headed) ResponseHeaders() []rest.Header { return []rest.Header{{Name: "p-auth", Value: "token"}} }

// TestStandardHeaders: what every answer carries, refusals included (SEC-39).
func TestStandardHeaders(t *testing.T) {
	opts := allow()
	opts.PublicURL = "https://id.example.com"
	s := serve(t, opts, rest.Get("/ok", "", rest.NoAuth, nothing), rest.Get("/closed", "", rest.User, nothing),
		rest.Get("/broken", "", rest.NoAuth, fails(errors.New("x"))),
		rest.Get("/panic", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.None, error) { panic("x") }))
	s.Raw("GET", "/page", func(c *fiber.Ctx) error { return c.SendString("page") })
	for target, status := range map[string]int{"/ok": 200, "/closed": 401, "/nowhere": 404, "/broken": 500, "/panic": 500,
		"/page": 200, "//ok": 404, "/ok%2f": 404} {
		a := do(t, s, "GET", target, "", "x-request-id: client-made.id_1")
		want := map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Api-Version": "1",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"Strict-Transport-Security": "max-age=31536000; includeSubDomains",
			"Server":                    "", "Vary": ""}
		for name, value := range want {
			storetest.Equal(t, a.header.Get(name), value, target, name, "=")
		}
		storetest.Equal(t, a.status, status, target, "=")
		name := a.header.Get("X-Request-Id")
		if len(name) != id.Len || status >= 400 && !strings.HasSuffix(a.body, `"requestId":"`+name+`"}`) {
			t.Errorf("%s is called %q: %s", target, name, a.body)
		}
	}
	opts.PublicURL = "http://localhost"
	storetest.Equal(t, do(t, serve(t, opts), "GET", "/", "").header.Get("Strict-Transport-Security"), "",
		"HSTS without https")
}

// TestRequestIDs: a client's request id is in the log beside our own id, and nowhere else, so
// that the audit cannot confuse them.
func TestRequestIDs(t *testing.T) {
	var log strings.Builder
	var seen string
	opts := allow()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	opts.Observe = func(_ context.Context, a Answered) { seen = a.Caller.RequestID }
	s := serve(t, opts, rest.Get("/ok", "", rest.NoAuth, nothing), rest.Get("/broken", "", rest.NoAuth,
		fails(errors.New("x"))))
	for asked, kept := range map[string]bool{"client-made.id_1": true, "7": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "with space": false, "ünïcode-id": false, `quo"te-id`: false, "": false} {
		for target, lines := range map[string]int{"/ok": 1, "/broken": 2} {
			log.Reset()
			a := do(t, s, "GET", target, "", "x-request-id: "+asked)
			own := a.header.Get("X-Request-Id")
			if len(own) != id.Len || own == asked || seen != own || strings.Count(log.String(), "requestId="+own) != lines {
				t.Errorf("%q became %q, %q for the audit:\n%s", asked, own, seen, log.String())
			}
			want := 0
			if kept {
				want = lines
			}
			if strings.Count(log.String(), "clientRequestId="+asked+"\n") != want ||
				strings.Count(log.String(), "clientRequestId") != want {
				t.Errorf("%q in the log:\n%s", asked, log.String())
			}
		}
	}
}

// TestProblem: every part of a fault reaches the client (D-GEN-09).
func TestProblem(t *testing.T) {
	for _, code := range []fault.Code{fault.InvalidField, fault.OTPInvalid, fault.RateLimited, fault.Internal,
		fault.Overloaded} {
		f := &fault.Error{Code: code, Message: "said", AttemptsLeft: new(2), RetryAfter: 1500 * time.Millisecond}
		s := serve(t, allow(), rest.Get("/x", "", rest.NoAuth, fails(fmt.Errorf("wrapped: %w", f))))
		a := do(t, s, "GET", "/x", "", "accept-language: tr")
		if code == fault.Internal {
			f = fault.New(code, "the request could not be served")
		}
		status, body := rest.Problem(f, "tr", a.header.Get("X-Request-Id"))
		retry := ""
		if f.RetryAfter > 0 {
			retry = "2"
		}
		if a.status != status || a.body != string(body) || a.header.Get("Retry-After") != retry ||
			a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %v %s, want %d %s", code, a.status, a.header, a.body, status, body)
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
			[]string{`"field":"a","errors":[{"field":"a","message":"is required"},{"field":"b","message":"is odd"}]`},
			[]string{"attemptsLeft"}, ""},
		{"field alone", &fault.Error{Code: fault.RecordAlreadyExist, Message: "taken", Field: "name"}, 409,
			[]string{`"field":"name","errors":[{"field":"name","message":"taken"}]`}, nil, ""},
		{"no field", fault.New(fault.InvalidState, "no"), 409, nil, []string{"field", "errors"}, ""},
		{"no text", &fault.Error{Code: fault.RecordNotFound}, 404, []string{`"detail":"Record not found"`}, nil, ""},
		{"retry without a time", fault.New(fault.RateLimited, "slow"), 429, nil, nil, "1"},
		{"retry rounded up", fault.New(fault.RateLimited, "slow").After(59*time.Second + time.Nanosecond), 429, nil, nil,
			"60"},
		{"retry of another code", fault.New(fault.ChallengeNotCompleted, "wait").After(time.Second), 409, nil, nil, "1"},
		{"unknown code", fault.New("NEW_CODE", "secret"), 500, []string{`"code":"INTERNAL"`}, []string{"secret", "NEW_CODE"},
			""},
		{"internal", errors.New(`pq: relation "users" /srv/app/x.go:12`), 500, []string{`"code":"INTERNAL"`},
			[]string{"pq", "users", ".go"}, ""},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), 503, []string{`"code":"UNAVAILABLE"`},
			[]string{"query"}, "1"},
		{"cancelled", context.Canceled, 503, []string{`"code":"UNAVAILABLE"`}, nil, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := do(t, serve(t, allow(), rest.Get("/x", "", rest.NoAuth, fails(c.err))), "GET", "/x", "")
			if a.status != c.status || a.header.Get("Retry-After") != c.retry {
				t.Errorf("%d, Retry-After %q: %s", a.status, a.header.Get("Retry-After"), a.body)
			}
			for _, part := range c.has {
				storetest.Contains(t, a.body, part)
			}
			for _, part := range c.hasNot {
				storetest.Lacks(t, a.body, part)
			}
		})
	}
}

// Details of a problem and of every field are in the client's language; detail stays English
// (D-GEN-09, D-GEN-16).
func TestMessagesAreLocalized(t *testing.T) {
	type request struct {
		Code  string  `json:"code" maxLength:"3"`
		Count int     `json:"count" minimum:"1"`
		Kind  *string `json:"kind" enum:"a,b"`
	}
	s := serve(t, allow(), rest.Post("/x", "", rest.NoAuth,
		func(context.Context, rest.Caller, request) (rest.None, error) {
			return rest.None{}, nil
		}), rest.Post("/fails", "", rest.NoAuth, fails(fault.New(fault.InvalidField,
		"nothing to change"))),
		rest.Post("/other", "", rest.NoAuth, fails(fault.Invalid("a", "is odd"))))
	for _, c := range []struct{ path, body, language, message, errors string }{
		{"/x", `{}`, "tr", "code: zorunludur", "code: zorunludur; count: zorunludur"},
		{"/x", `{}`, "ar", "code: مطلوب", "code: مطلوب; count: مطلوب"},
		{"/x", `{}`, "en", "code: is required", "code: is required; count: is required"},
		{"/x", `{"code":"long","count":0,"kind":"c"}`, "tr", "code: en fazla 3 karakter olabilir",
			"code: en fazla 3 karakter olabilir; count: en az 1 olmalıdır; kind: şunlardan biri olmalıdır: a, b"},
		{"/x", `{"code":1,"count":"x"}`, "ar", "code: يجب أن يكون نصا",
			"code: يجب أن يكون نصا; count: يجب أن يكون عددا صحيحا"},
		{"/x", `{"code":`, "tr", "8. baytta hatalı JSON: beklenmeyen son", ""},
		{"/fails", `{}`, "tr", "değiştirilecek bir şey yok", ""},
		{"/other", `{}`, "tr", "Geçersiz istek", "a: is odd"},
	} {
		a := do(t, s, "POST", c.path, c.body, "accept-language: "+c.language)
		var p struct {
			Detail, Message string
			Errors          []struct{ Field, Message string }
		}
		storetest.Must(t, json.Unmarshal([]byte(a.body), &p))
		var all []string
		for _, e := range p.Errors {
			all = append(all, e.Field+": "+e.Message)
		}
		if got := strings.Join(all, "; "); p.Message != c.message || got != c.errors {
			t.Errorf("%s %s in %s: %q, %q", c.path, c.body, c.language, p.Message, got)
		}
		storetest.Contains(t, do(t, s, "POST", c.path, c.body).body, `"detail":`+strconv.Quote(p.Detail), c.path, c.language)
	}
}

// TestRawErrors: the errors of Fiber and of the library about a message.
func TestRawErrors(t *testing.T) {
	s := serve(t, allow())
	for status, c := range map[int]struct {
		status int
		code   fault.Code
	}{
		400: {400, fault.InvalidField}, 408: {408, fault.RequestTimeout}, 413: {413, fault.PayloadTooLarge},
		418: {400, fault.InvalidField}, 431: {431, fault.HeadersTooLarge}, 500: {500, fault.Internal},
	} {
		path := "/e" + strings.Repeat("x", status-399)
		s.Raw("GET", path, func(*fiber.Ctx) error { return fiber.NewError(status, "secret text") })
		a := do(t, s, "GET", path, "")
		if a.status != c.status || a.code() != string(c.code) || strings.Contains(a.body, "secret") {
			t.Errorf("%d became %d %s", status, a.status, a.body)
		}
	}
}
