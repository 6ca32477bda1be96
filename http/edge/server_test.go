package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

func TestBody(t *testing.T) {
	s := serve(t, allow(), rest.Post("/echo", "", rest.NoAuth, echo), rest.Post("/small", "", rest.NoAuth, echo).Body(64),
		rest.Post("/large", "", rest.User, echo).Body(2<<20), rest.Get("/get", "", rest.NoAuth, echo), rest.Delete("/del",
			"", rest.NoAuth, echo))
	ok := `{"text":"x"}`
	pad := func(n int) string { return `{"text":"` + strings.Repeat("x", n-len(`{"text":""}`)) + `"}` }
	for _, c := range []struct {
		name, method, target, body string
		headers                    []string
		status                     int
		code                       fault.Code
	}{
		{"json", "POST", "/echo", ok, nil, 200, ""},
		{"charset", "POST", "/echo", ok, []string{"content-type: application/json; charset=UTF-8"}, 200, ""},
		{"capitals", "POST", "/echo", ok, []string{"content-type: Application/JSON"}, 200, ""},
		{"other charset", "POST", "/echo", ok, []string{"content-type: application/json; charset=utf-16"}, 415,
			"UNSUPPORTED_MEDIA"},
		{"text", "POST", "/echo", ok, []string{"content-type: text/plain"}, 415, "UNSUPPORTED_MEDIA"},
		{"form", "POST", "/echo", "text=x", []string{"content-type: application/x-www-form-urlencoded"}, 415,
			"UNSUPPORTED_MEDIA"},
		{"multipart", "POST", "/echo", ok, []string{"content-type: multipart/form-data; boundary=x"}, 415,
			"UNSUPPORTED_MEDIA"},
		{"look-alike", "POST", "/echo", ok, []string{"content-type: application/json+x"}, 415, "UNSUPPORTED_MEDIA"},
		{"no type", "POST", "/echo", ok, []string{"content-type: "}, 415, "UNSUPPORTED_MEDIA"},
		{"gzip", "POST", "/echo", ok, []string{"content-encoding: gzip"}, 415, "UNSUPPORTED_MEDIA"},
		{"gzip twice", "POST", "/echo", ok, []string{"content-encoding: gzip, gzip"}, 415, "UNSUPPORTED_MEDIA"},
		{"identity", "POST", "/echo", ok, []string{"content-encoding: identity"}, 200, ""},
		{"malformed", "POST", "/echo", `{"text":`, nil, 400, "INVALID_FIELD"},
		{"no body", "POST", "/echo", ``, nil, 400, "INVALID_FIELD"},
		{"limit", "POST", "/small", pad(64), nil, 200, ""},
		{"over the limit", "POST", "/small", pad(65), nil, 413, "PAYLOAD_TOO_LARGE"},
		{"default limit", "POST", "/echo", pad(16 << 10), nil, 200, ""},
		{"over the default limit", "POST", "/echo", pad(16<<10 + 1), nil, 413, "PAYLOAD_TOO_LARGE"},
		{"larger limit", "POST", "/large", pad(2 << 20), []string{"x-auth: u1"}, 200, ""},
		{"over the larger limit", "POST", "/large", pad(2<<20 + 1), []string{"x-auth: u1"}, 413, "PAYLOAD_TOO_LARGE"},
		{"larger limit for nobody", "POST", "/large", pad(2 << 20), nil, 401, "UNAUTHENTICATED"},
		{"GET with a body", "GET", "/get", ok, nil, 200, ""},
		{"GET with a query", "GET", "/get?text=q", "", nil, 200, ""},
		{"GET with a body of another type", "GET", "/get?text=q", "x", []string{"content-type: text/plain"}, 415,
			"UNSUPPORTED_MEDIA"},
		{"DELETE with a body", "DELETE", "/del", ok, nil, 200, ""},
		{"DELETE with a query", "DELETE", "/del?text=q", "", nil, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			do(t, s, c.method, c.target, c.body, c.headers...).is(t, c.status, c.code)
		})
	}
}

// TestOrder: each check runs after those before it and not when one of them
// refuses (D-GEN-19).
func TestOrder(t *testing.T) {
	var ran []string
	var refuse string
	step := func(name string) error {
		ran = append(ran, name)
		if name == refuse {
			return fault.New(fault.Forbidden, "%s", name)
		}
		return nil
	}
	opts := Options{
		Firewall: func(_ context.Context, r *Request, key string) error {
			if key != "POST /x" || r.Key() != key || r.Endpoint == nil {
				t.Errorf("firewall saw %q %q", key, r.Key())
			}
			return step("firewall")
		},
		Guards: map[rest.Credential]Guard{rest.Tenant: func(_ context.Context, r *Request) (rest.Caller, error) {
			who := r.Caller
			who.UserID = "u1"
			return who, step("guard")
		}},
		Authorize: func(_ context.Context, who rest.Caller, e *rest.Endpoint) error {
			if who.UserID != "u1" || e.Audience != rest.Admin {
				t.Errorf("authorize saw %q %q", who.UserID, e.Audience)
			}
			return step("authorize")
		},
		Verify: func(_ context.Context, who rest.Caller, _ *rest.Endpoint, in any) error {
			if who.OTP != "123456" || in.(*echoRequest).Text == "" {
				t.Errorf("verify saw %q %v", who.OTP, in)
			}
			return step("verify")
		},
	}
	s := serve(t, opts, rest.Post("/x", "", rest.Tenant, func(_ context.Context, who rest.Caller,
		in echoRequest) (rest.None, error) {
		return rest.None{}, step("handler")
	}).Verified().Body(100))
	all := []string{"firewall", "guard", "authorize", "verify", "handler"}
	for i, name := range append(all, "") {
		ran, refuse = nil, name
		a := do(t, s, "POST", "/x", `{"text":"x"}`, "otp: 123456")
		want := all[:min(i+1, len(all))]
		if !reflect.DeepEqual(ran, want) || (name == "") != (a.status == 200) {
			t.Errorf("refused by %q: %d, ran %q", name, a.status, ran)
		}
	}
	refuse = ""
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		want       []string
	}{
		{"body too large", `{"text":"` + strings.Repeat("x", 100) + `"}`, nil, 413, nil},
		{"coding", `{"text":"x"}`, []string{"content-encoding: br"}, 415, nil},
		{"type", `{"text":"x"}`, []string{"content-type: text/plain"}, 415, all[:3]},
		{"field", `{}`, nil, 400, all[:3]},
		{"otp in the body", `{"text":"x","otp":"123456"}`, []string{}, 200, all},
		{"other header", `{"text":"x"}`, []string{"x-otp: 123456"}, 200, all},
	} {
		ran = nil
		if a := do(t, s, "POST", "/x", c.body, c.headers...); a.status != c.status || !reflect.DeepEqual(ran, c.want) {
			t.Errorf("%s: %d, ran %q", c.name, a.status, ran)
		}
	}
}

func TestCaller(t *testing.T) {
	var log strings.Builder
	opts := allow()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	opts.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")} // what app.Test connects from
	opts.CountryHeader = "CF-IPCountry"
	opts.CountryOf = func(a netip.Addr) string { return map[string]string{"1.2.3.4": "DE"}[a.String()] }
	s := serve(t, opts, rest.Get("/me", "", rest.NoAuth, whoami), rest.Post("/hash", "", rest.NoAuth, whoami).HashBody())
	got := func(a answer) (c rest.Caller) {
		t.Helper()
		if err := json.Unmarshal([]byte(a.body), &c); err != nil || a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return c
	}
	c := got(do(t, s, "GET", "/me?a=b%20c", "", "device-brand: Acme", "device-model: One", "device-desc: work",
		"user-agent: test/1",
		"device_signature: sig", "x-forwarded-for: 6.6.6.6, 1.2.3.4", "accept-language: de, ar", "idempotency-key: k"))
	want := rest.Caller{IP: netip.MustParseAddr("1.2.3.4"), Country: "DE", Language: "ar", LanguageAsked: true,
		DeviceSignature: "sig", RequestID: c.RequestID,
		Device: rest.DeviceInfo{Brand: "Acme", Model: "One", Description: "work",
			UserAgent: "test/1"}, Method: "GET", Path: "/me", RawQuery: "a=b%20c"}
	storetest.Same(t, c, want, "caller")
	storetest.Equal(t, got(do(t, s, "GET", "/me", "", "cf-ipcountry: TR", "x-forwarded-for: 1.2.3.4")).Country, "TR",
		"country")
	for _, header := range []string{"XX", "XK", "tr"} {
		storetest.Equal(t, got(do(t, s, "GET", "/me", "", "cf-ipcountry: "+header, "x-forwarded-for: 1.2.3.4")).Country, "",
			header, "country")
	}
	for _, headers := range [][]string{{"cf-ipcountry: TR", "cf-ipcountry: FR"}, {"cf-ipcountry: FR", "cf-ipcountry: FR"},
		{"cf-ipcountry: ", "cf-ipcountry: FR", "cf-ipcountry: TR"}} { // only our default decides then, and no header
		storetest.Equal(t, got(do(t, s, "GET", "/me", "", append(headers, "x-forwarded-for: 1.2.3.4")...)).Country, "DE",
			headers, "country")
	}
	storetest.Equal(t, strings.Count(log.String(), "lets clients set their country"), 1, "warnings in", log.String())
	if c := got(do(t, s, "GET", "/me", "", "device-brand: "+strings.Repeat("é",
		100)+"\xff")); len(c.Device.Brand) > maxDevice || c.Device.Brand[:2] != "é" {
		t.Errorf("brand %q", c.Device.Brand)
	}
	storetest.Equal(t, got(do(t, s, "GET", "/me", "", "user-agent: a\xffb")).Device.UserAgent, "ab", "agent")
	for header, want := range map[string]string{"accept-language: fr": "en", "_requesterLanguage: tr": "tr",
		"accept-language: tr": "tr"} {
		storetest.Equal(t, got(do(t, s, "GET", "/me", "", header)).Language, want, header, "language")
	}
	storetest.Equal(t, got(do(t, s, "GET", "/me?_requesterLanguage=ar", "", "_requesterLanguage: tr")).Language, "ar",
		"language")
	body := `{"_requesterLanguage":"tr"}`
	c = got(do(t, s, "POST", "/hash", body, "device-signature: new", "device_signature: old"))
	if fmt.Sprintf("%x", c.BodyHash) == strings.Repeat("0", 64) || c.DeviceSignature != "new" || c.Language != "tr" ||
		!c.HasBody {
		t.Errorf("caller %+v", c)
	}

	opts.TrustedProxies = nil
	s = serve(t, opts, rest.Get("/me", "", rest.NoAuth, whoami))
	for _, h := range []string{"x-forwarded-for: 1.2.3.4", "forwarded: for=1.2.3.4", "x-real-ip: 1.2.3.4",
		"true-client-ip: 1.2.3.4", "cf-connecting-ip: 1.2.3.4", "x_forwarded_for: 1.2.3.4"} {
		if c := got(do(t, s, "GET", "/me", "", h, "cf-ipcountry: TR")); c.IP.String() != "0.0.0.0" || c.Country != "" {
			t.Errorf("%s: %v %q", h, c.IP, c.Country)
		}
	}
}

func TestWait(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 0, "wait=5": 5 * time.Second,
		"respond-async, wait=10": 10 * time.Second, "wait=31": maxWait,
		"wait=4000000000": 0, "wait=-1": 0, "wait=x": 0, "Wait = 7": 7 * time.Second, "wait=3;x=1": 3 * time.Second,
		`wait="4"`: 4 * time.Second} {
		storetest.Equal(t, wait([]byte(header)), want, header)
	}
}

// TestDeadline: a handler's context ends after the timeout and the asked wait.
func TestDeadline(t *testing.T) {
	opts := allow()
	opts.Timeout = 3 * time.Second
	var left time.Duration
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth,
		func(ctx context.Context, _ rest.Caller, _ rest.None) (rest.None, error) {
			at, _ := ctx.Deadline()
			left = time.Until(at)
			return rest.None{}, nil
		}))
	do(t, s, "GET", "/x", "")
	if left > 3*time.Second || left < 2*time.Second {
		t.Errorf("left %v", left)
	}
	do(t, s, "GET", "/x", "", "prefer: wait=20")
	if left > 23*time.Second || left < 22*time.Second {
		t.Errorf("left %v", left)
	}
}

func TestUnmatched(t *testing.T) {
	var keys []string
	opts := allow()
	opts.Firewall = func(_ context.Context, r *Request, key string) error {
		keys = append(keys, key)
		if r.Header("block") != "" {
			return fault.New(fault.AccessDenied, "denied")
		}
		return nil
	}
	s := serve(t, opts, rest.Get("/a/b", "", rest.NoAuth, nothing), rest.Post("/a/b", "", rest.NoAuth, nothing),
		rest.Get("/a/{id}/c", "", rest.NoAuth,
			func(context.Context, rest.Caller, rest.ByID) (rest.None, error) {
				return rest.None{}, nil
			}))
	s.Raw("GET", "/socket", func(c *fiber.Ctx) error { return c.SendString("ok") })
	s.Raw("GET", "/health/live", func(c *fiber.Ctx) error { return c.SendString("ok") })
	s.Raw("GET", "/page", func(c *fiber.Ctx) error { return fault.New(fault.NotFound, "no such page") })
	for _, c := range []struct {
		method, target string
		status         int
		code, key      string
	}{
		{"GET", "/a/b", 200, "", "GET /a/b"},
		{"HEAD", "/a/b", 200, "", "GET /a/b"},
		{"GET", "/a/5/c", 200, "", "GET /a/{id}/c"},
		{"GET", "/nowhere", 404, "NOT_FOUND", "GET *"},
		{"HEAD", "/nowhere", 404, "", "GET *"},
		{"GET", "/a/b/", 404, "NOT_FOUND", "GET *"},
		{"GET", "/A/b", 404, "NOT_FOUND", "GET *"},
		{"GET", "/a//b", 404, "NOT_FOUND", "GET *"},
		{"GET", "/a/./b", 404, "NOT_FOUND", "GET *"},
		{"GET", "/a/../a/b", 404, "NOT_FOUND", "GET *"},
		{"GET", "/a/%62", 404, "NOT_FOUND", "GET *"},
		{"GET", "/a%2fb", 404, "NOT_FOUND", "GET *"},
		{"GET", "/a/b;x=1", 404, "NOT_FOUND", "GET *"},
		{"PUT", "/a/b", 405, "METHOD_NOT_ALLOWED", "PUT *"},
		{"PATCH", "/a/5/c", 405, "METHOD_NOT_ALLOWED", "PATCH *"},
		{"OPTIONS", "/a/b", 405, "METHOD_NOT_ALLOWED", "OPTIONS *"},
		{"TRACE", "/a/b", 405, "METHOD_NOT_ALLOWED", "TRACE *"},
		{"BREW", "/a/b", 405, "METHOD_NOT_ALLOWED", "UNKNOWN *"},
		{"get", "/a/b", 405, "METHOD_NOT_ALLOWED", "UNKNOWN *"},
		{"GET", "/socket", 200, "", "GET /socket"},
		{"POST", "/socket", 405, "METHOD_NOT_ALLOWED", "POST *"},
		{"GET", "/page", 404, "NOT_FOUND", "GET /page"},
		{"GET", "/health/live", 200, "", "GET /health/live"},
	} {
		keys = nil
		a := do(t, s, c.method, c.target, "")
		if a.status != c.status || a.code() != c.code || strings.Join(keys, "|") != c.key {
			t.Errorf("%s %s = %d %s, firewall %q", c.method, c.target, a.status, a.body, keys)
		}
		if allow := a.header.Get("Allow"); (a.status == 405) != (allow != "") {
			t.Errorf("%s %s: Allow %q", c.method, c.target, allow)
		}
		storetest.Equal(t, do(t, s, c.method, c.target, "", "block: 1").status, 403, c.method, c.target, "at the firewall")
	}
	storetest.Equal(t, do(t, s, "PUT", "/a/b", "").header.Get("Allow"), "GET, HEAD, POST", "Allow")
}

func TestBasePath(t *testing.T) {
	opts := allow()
	opts.BasePath = "/api/v1/"
	opts.Draining = func() bool { return true }
	var key string
	opts.Firewall = func(_ context.Context, _ *Request, k string) error { key = k; return nil }
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth, whoami))
	s.Raw("GET", "/health/live", func(c *fiber.Ctx) error { return c.SendString("ok") })
	do(t, s, "GET", "/api/v1/health/live", "").is(t, 200, "", "health")
	opts.Draining = nil
	s = serve(t, opts, rest.Get("/x", "", rest.NoAuth, whoami))
	if a := do(t, s, "GET", "/api/v1/x", ""); a.status != 200 || key != "GET /x" ||
		!strings.Contains(a.body, `"path":"/api/v1/x"`) {
		t.Errorf("%d %s, key %q", a.status, a.body, key)
	}
	do(t, s, "GET", "/x", "").is(t, 404, fault.NotFound, "outside the base path")
}

func TestDrainingAndOverload(t *testing.T) {
	opts := allow()
	draining := false
	opts.Draining = func() bool { return draining }
	opts.MaxInFlight = 1
	var s *Server
	var inner, health answer
	s = serve(t, opts, rest.Get("/x", "", rest.NoAuth, nothing), rest.Get("/outer", "", rest.NoAuth,
		func(context.Context, rest.Caller, rest.None) (rest.None, error) {
			inner, health = do(t, s, "GET", "/x", ""), do(t, s, "GET", "/health/ready", "")
			return rest.None{}, nil
		}))
	s.Raw("GET", "/health/ready", func(c *fiber.Ctx) error { return c.SendString("ready") })
	if a := do(t, s, "GET", "/outer", ""); a.status != 200 || inner.status != 503 || inner.code() != "OVERLOADED" ||
		inner.header.Get("Retry-After") != "1" || health.status != 200 {
		t.Errorf("outer %d, inner %d %s, health %d", a.status, inner.status, inner.body, health.status)
	}
	do(t, s, "GET", "/x", "").is(t, 200, "", "after the count was given back")
	draining = true
	if a := do(t, s, "GET", "/x", ""); a.status != 503 || a.code() != "DRAINING" || a.header.Get("Retry-After") == "" {
		t.Errorf("draining: %d %v %s", a.status, a.header, a.body)
	}
	do(t, s, "GET", "/health/ready", "").is(t, 200, "", "health while draining")
}

// A page of another name that resolves to this machine reads nothing, not even a health check.
func TestLocalNames(t *testing.T) {
	opts := allow()
	opts.LocalNames = true
	addr := listen(t, serve(t, opts, rest.Get("/health/x", "", rest.NoAuth, nothing)))
	for host, want := range map[string]int{"localhost:8080": 200, "LOCALHOST": 200, "127.0.0.1:80": 200, "[::1]:8080": 200,
		"evil.example": 403, "localhost.evil.example:8080": 403, "10.0.0.7:8080": 403, "0.0.0.0": 403} {
		answers, _ := wire(t, addr, "GET /health/x HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 1)
		if len(answers) != 1 || answers[0].status != want {
			t.Errorf("%s: %+v", host, answers)
		}
	}
}

func TestRepeatedHeaders(t *testing.T) {
	s := serve(t, allow(), rest.Get("/x", "", rest.User, nothing))
	for _, name := range []string{"x-auth", "p-auth", "ot-auth", "cron-auth", "service-auth", "tenant-id",
		"device-signature", "device_signature", "otp", "x-otp", "idempotency-key"} {
		do(t, s, "GET", "/x", "", name+": a", name+": b").is(t, 400, "INVALID_FIELD", name, "twice")
	}
}
