package edge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
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
	do(t, s, "POST", "/x", `{"text":"x"}`, "x-auth: u").is(t, 404, "RECORD_NOT_FOUND", "general shape of another code")
	do(t, s, "POST", "/x", `{}`).is(t, 401, "UNAUTHENTICATED", "general shape of a guard")
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
		storetest.Equal(t, RequestOf(c).Caller.IP.String(), "0.0.0.0", "address without a caller")
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
		storetest.Contains(t, text, want, "log")
	}
	for _, secret := range []string{"s3cr3t", "/things/0", "things/1"} {
		storetest.Lacks(t, text, secret, "log")
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

// Each request is followed once, from when it came, under the template that
// served it, and ends with its answer; health checks are not followed.
func TestTrace(t *testing.T) {
	type followed struct {
		Traceable
		status int
		code   fault.Code
	}
	var got []followed
	type key struct{}
	opts := allow()
	opts.Firewall = func(context.Context, *Request, string) error { return nil }
	opts.Trace = func(ctx context.Context, q Traceable) (context.Context, func(int, fault.Code)) {
		got = append(got, followed{Traceable: q})
		i := len(got) - 1
		return context.WithValue(ctx, key{}, i), func(status int, code fault.Code) {
			got[i].status, got[i].code = status, code
		}
	}
	s := serve(t, opts, rest.Get("/things/{id}", "x", rest.NoAuth, func(ctx context.Context, _ rest.Caller,
		_ rest.None) (rest.None, error) {
		if ctx.Value(key{}) == nil {
			t.Error("a handler works outside of the trace")
		}
		return rest.None{}, fault.New(fault.RecordNotFound, "no such thing")
	}))
	do(t, s, "GET", "/things/secret?q=secret", "", "traceparent: 00-a-b-01", "tracestate: x=1")
	do(t, s, "GET", "/nowhere/secret", "")
	if len(got) != 2 || got[0].Key != "GET /things/{id}" || got[0].Parent != "00-a-b-01" || got[0].State != "x=1" ||
		got[0].Trusted || got[0].Start.IsZero() || got[0].status != http.StatusNotFound ||
		got[0].code != fault.RecordNotFound || got[1].Key != "GET *" || got[1].code != fault.NotFound {
		t.Errorf("%+v", got)
	}
}

// A server that follows nothing makes nothing for it: a request allocates what
// it did before there were traces.
func TestUntracedRequestsCostNothing(t *testing.T) {
	const before = 11 + instrumented
	opts := allow()
	s := serve(t, opts, rest.Get("/x", "x", rest.NoAuth,
		func(context.Context, rest.Caller, rest.None) (rest.None, error) {
			return rest.None{}, nil
		}))
	s.App.Handler() // builds the router's tree
	web := s.App.Server().Handler
	var c fasthttp.RequestCtx
	c.Init(&fasthttp.Request{}, loopAddr, nil)
	c.Request.SetRequestURI("/x")
	c.Request.Header.SetHost("id.example.com")
	least := math.Inf(1) // of many: a pool may give nothing, as it does by chance under the race detector
	for range 300 {
		least = min(least, testing.AllocsPerRun(1, func() {
			c.Response.Reset()
			web(&c)
		}))
	}
	storetest.Equal(t, c.Response.StatusCode(), 200, string(c.Response.Body()))
	if least > before {
		t.Errorf("%v allocations, want at most %d", least, before)
	}
}

// After a stop of the process a request is served only for a client that is still
// there.
func TestResumed(t *testing.T) {
	var served atomic.Int64
	gate := make(chan struct{})
	opts := allow()
	opts.Resumed = func() bool {
		select {
		case <-gate:
		case <-t.Context().Done():
		}
		return true
	}
	ended := make(chan int, 4)
	opts.Observe = func(_ context.Context, a Answered) { ended <- a.Status }
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.None, error) {
		served.Add(1)
		return rest.None{}, nil
	}))
	addr := listen(t, s)
	const whole = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	stays, goes, resets := dial(t, addr), dial(t, addr), dial(t, addr)
	for _, c := range []io.Writer{stays, goes, resets} {
		storetest.Must(t, storetest.Err(io.WriteString(c, whole)))
	}
	goes.Close()
	resets.(interface{ SetLinger(int) error }).SetLinger(0)
	resets.Close()
	close(gate)
	if text := receive(t, stays); !strings.HasPrefix(text, "HTTP/1.1 200 ") {
		t.Errorf("who stayed got %q", text)
	}
	dropped := 0
	for range 3 {
		select {
		case status := <-ended:
			if status == 503 {
				dropped++
			}
		case <-time.After(5 * time.Second):
			dropped++ // its connection broke before it was read
		}
	}
	if served.Load() != 1 || dropped != 2 {
		t.Errorf("%d served, %d dropped", served.Load(), dropped)
	}
}

// The end of all requests gives the reason to their clients and not to the log.
func TestBase(t *testing.T) {
	base, cancel := context.WithCancelCause(t.Context())
	opts := allow()
	opts.Base = func() context.Context { return base }
	entered := make(chan struct{})
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth,
		func(ctx context.Context, _ rest.Caller, _ rest.None) (rest.None, error) {
			close(entered)
			<-ctx.Done()
			return rest.None{}, ctx.Err()
		}))
	c := dial(t, listen(t, s))
	storetest.Must(t, storetest.Err(io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")))
	<-entered
	cancel(fault.New(fault.Unavailable, "the node was stopped").After(2 * time.Second))
	a := parsed(t, receive(t, c))
	if a.status != 503 || a.header.Get("Retry-After") != "2" || !strings.Contains(a.body, "the node was stopped") {
		t.Errorf("%+v", a)
	}
}
