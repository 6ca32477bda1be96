package edge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

func TestRefuseWith(t *testing.T) {
	type refusal struct {
		Code    int    `json:"code"`
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	own := func(status int, f *fault.Error) any {
		if f.Code != fault.InvalidField {
			return nil
		}
		return refusal{1, string(f.Code), f.Message}
	}
	s := serve(t, allow(), rest.Post("/x", "", rest.User,
		func(context.Context, rest.Caller, echoRequest) (rest.None, error) {
			return rest.None{}, fault.New(fault.RecordNotFound, "none")
		}).RefuseWith(own))
	if a := do(t, s, "POST", "/x", `{}`, "x-auth: u"); a.status != 400 ||
		a.body != `{"code":1,"error":"INVALID_FIELD","message":"text: is required"}` ||
		a.header.Get("Content-Type") != "application/json" {
		t.Errorf("own shape: %d %s", a.status, a.body)
	}
	if a := do(t, s, "POST", "/x", `{"text":"x"}`, "x-auth: u"); a.status != 404 || a.code() != "RECORD_NOT_FOUND" {
		t.Errorf("general shape of another code: %d %s", a.status, a.body)
	}
	if a := do(t, s, "POST", "/x", `{}`); a.status != 401 || a.code() != "UNAUTHENTICATED" {
		t.Errorf("general shape of a guard: %d %s", a.status, a.body)
	}
}

func TestRequestHooks(t *testing.T) {
	opts := allow()
	var asked []bool
	opts.Firewall = func(_ context.Context, r *Request, _ string) error {
		r.SetHeader("ratelimit", `"x";r=3;t=41`)
		asked = append(asked, r.LanguageAsked())
		if r.Header("absent") != "" || r.Header("X-AUTH") != "u" {
			t.Error("Header")
		}
		return nil
	}
	s := serve(t, opts, rest.Get("/ok", "", rest.User, nothing),
		rest.Get("/no", "", rest.User, fails(fault.New(fault.Forbidden, "no"))))
	s.Raw("GET", "/raw", func(c *fiber.Ctx) error {
		if RequestOf(c).Caller.IP.String() != "0.0.0.0" {
			t.Error("RequestOf")
		}
		return fault.New(fault.Unauthenticated, "no")
	})
	for target, status := range map[string]int{"/ok": 200, "/no": 403, "/raw": 401, "/nowhere": 404} {
		if a := do(t, s, "GET", target, "", "x-auth: u"); a.status != status || a.header.Get("RateLimit") == "" {
			t.Errorf("%s: %d %v", target, a.status, a.header)
		}
	}
	do(t, s, "GET", "/ok", "", "x-auth: u", "accept-language: tr")
	if slices.Contains(asked[:4], true) || !asked[4] {
		t.Errorf("LanguageAsked %v", asked)
	}
}

func TestLogAndObserve(t *testing.T) {
	var log strings.Builder
	opts := allow()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var seen []Answered
	opts.Observe = func(_ context.Context, a Answered) { seen = append(seen, a) }
	s := serve(t, opts, rest.Get("/things/{id}", "", rest.User, func(_ context.Context, _ rest.Caller,
		in rest.ByID) (rest.None, error) {
		switch in.ID {
		case 1:
			return rest.None{}, errors.New("db is gone")
		case 2:
			panic("boom")
		}
		return rest.None{}, nil
	}))
	do(t, s, "GET", "/things/0?secret=s3cr3t", "", "x-auth: u1")
	do(t, s, "GET", "/things/1?secret=s3cr3t", "", "x-auth: u1")
	if a := do(t, s, "GET", "/things/2?secret=s3cr3t", "", "x-auth: u1"); a.status != 500 ||
		strings.Contains(a.body, "boom") {
		t.Errorf("panic: %d %s", a.status, a.body)
	}
	do(t, s, "GET", "/things/0", "")
	text := log.String()
	for _, want := range []string{`level=INFO msg=request route="GET /things/{id}" status=200 code=""`,
		`level=ERROR msg="request failed"`, `err="db is gone"`,
		"panic: boom", "hooks_test.go", "status=401 code=UNAUTHENTICATED", "userId=u1"} {
		if !strings.Contains(text, want) {
			t.Errorf("log lacks %s:\n%s", want, text)
		}
	}
	for _, secret := range []string{"s3cr3t", "/things/0", "things/1"} {
		if strings.Contains(text, secret) {
			t.Errorf("log has %s:\n%s", secret, text)
		}
	}
	if len(seen) != 4 || seen[0].Status != 200 || seen[0].Key != "GET /things/{id}" || seen[0].Endpoint == nil ||
		seen[0].Caller.UserID != "u1" || seen[2].Code != fault.Internal || seen[3].Code != fault.Unauthenticated {
		t.Errorf("observed %+v", seen)
	}
	log.Reset()
	opts.AccessLog = slog.LevelDebug
	do(t, serve(t, opts, rest.Get("/x", "", rest.NoAuth, nothing)), "GET", "/x", "")
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}

// A refusal by a limit names the setting in the log, and in the detail in development mode only.
func TestRefusalNamesTheLimit(t *testing.T) {
	for _, dev := range []bool{true, false} {
		var log strings.Builder
		opts := allow()
		opts.Logger, opts.AccessLog, opts.Dev = slog.New(slog.NewTextHandler(&log, nil)), slog.LevelDebug, dev
		s := serve(t, opts, rest.Get("/no", "", rest.NoAuth, fails(fault.New(fault.RateLimited, "later").By("limits.x"))))
		for range 2 {
			if a := do(t, s, "GET", "/no", ""); strings.Contains(a.body, `"detail":"later (limits.x)"`) != dev ||
				strings.Contains(a.body, `"detail":"later"`) == dev {
				t.Errorf("dev %t: %s", dev, a.body)
			}
		}
		if want := map[bool]int{true: 2, false: 1}[dev]; strings.Count(log.String(), "limit=limits.x") != want ||
			strings.Count(log.String(), "\n") != want {
			t.Errorf("dev %t: %s", dev, log.String())
		}
	}
}

// At the default level, development mode logs each refused request in one line, without values; production logs none.
func TestDevelopmentModeLogsRefusedRequests(t *testing.T) {
	for field, logged := range map[string]string{"email": " field=email", "list[2].name": " field=list[2].name",
		"s3cr3t of a client": ""} {
		for _, dev := range []bool{true, false} {
			var log strings.Builder
			opts := allow()
			opts.Logger, opts.AccessLog, opts.Dev = slog.New(slog.NewTextHandler(&log, nil)), slog.LevelDebug, dev
			s := serve(t, opts, rest.Get("/ok", "", rest.NoAuth, nothing),
				rest.Get("/no", "", rest.NoAuth, fails(fault.Invalid(field, "s3cr3t"))))
			do(t, s, "GET", "/ok", "")
			id := do(t, s, "GET", "/no", "").header.Get("X-Request-Id")
			text := log.String()
			if !dev && text != "" || dev && (strings.Count(text, "\n") != 1 || !strings.Contains(text,
				`level=INFO msg=request route="GET /no" status=400 code=INVALID_FIELD`) ||
				!strings.HasSuffix(text, logged+" requestId="+id+"\n") || strings.Contains(text, "s3cr3t")) {
				t.Errorf("dev %t, field %q: %s", dev, field, text)
			}
		}
	}
}
