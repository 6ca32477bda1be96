package firewall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/admin"
	"castellan/domain/change"
	"castellan/domain/change/changetest"
	"castellan/domain/fault"
	"castellan/domain/firewall"
	"castellan/domain/ratelimit"
	"castellan/domain/resource"
	"castellan/domain/token"
	"castellan/http/edge"
	httpfirewall "castellan/http/firewall"
	"castellan/http/guard"
	"castellan/http/rest"
	"castellan/internal/apidoc"
	"castellan/internal/pgtest"
	"castellan/persistence"
)

// service is the section over a real database behind the firewall itself, with
// the guards of the program, tokens that are names, and a clock that is set.
type service struct {
	t         *testing.T
	srv       *edge.Server
	live      *firewall.Live
	evaluator *firewall.Evaluator
	now       atomic.Int64 // epoch ms
}

type tokens struct{}

func (tokens) Verify(class token.Class, raw string) (token.Claims, error) {
	if class != token.XAuth || raw != "admin" && raw != "user" && raw != "gone" {
		return token.Claims{}, fault.New(fault.Unauthenticated, "not a token")
	}
	return token.Claims{Subject: raw, SessionID: raw}, nil
}

// both runs a test on a fresh installation on each database.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	for name, dsn := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": func() string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, dsn())) })
	}
}

// The countries of this test's addresses.
var countries = map[string]string{"192.0.2.1": "TR", "192.0.2.2": "DE"}

func open(t *testing.T, dsn string) *service {
	t.Helper()
	ctx := t.Context()
	db, err := persistence.Open(ctx, dsn, persistence.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, db.Exclusive(ctx, func(ctx context.Context) error { _, err := db.Migrate(ctx); return err }))
	db.Start([]byte("audit key of the test"), "test")
	s := &service{t: t}
	s.now.Store(1_000_000)
	now := func() time.Time { return time.UnixMilli(s.now.Load()) }
	store := persistence.NewFirewall(db)
	s.live = firewall.NewLive(store, "API", now)
	s.evaluator = &firewall.Evaluator{Rules: s.live.Current, Limiter: ratelimit.NewTable(now), Bypass: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, Now: now}
	alive := func(user, _ string, _ int64) bool { return user != "gone" }
	guards := guard.Guards{
		Tokens: tokens{}, Tenant: "t1", Feed: &changetest.Feed{}, Live: alive,
		Judge: func(user, _, _ string) resource.Verdict { return resource.Verdict{Admin: user == "admin"} },
	}
	known := firewall.NewResources("/base", []string{"GET /a", "GET /p/{id}", "GET /socket", "GET " + firewall.RulesPath, "POST " + firewall.RulesPath, "PATCH " + firewall.RulesPath})
	countryOf := func(a netip.Addr) string { return countries[a.String()] }
	answer := func(context.Context, rest.Caller, rest.None) (rest.None, error) { return rest.None{}, nil }
	es := httpfirewall.Group{Admin: &firewall.Admin{Store: store, App: "API", Bypass: s.evaluator.Bypass, Known: known,
		Changes: admin.Changes{Commit: db, Now: now, Topic: change.Firewall, Follow: s.live.Follow}}}.Endpoints()
	es = append(es, httpfirewall.Explain{Evaluator: s.evaluator, Known: known, CountryOf: countryOf}.Endpoints()...)
	es = append(es, rest.Get("/a", "", rest.NoAuth, answer), rest.Post("/a", "", rest.User, answer),
		rest.Get("/p/{id}", "", rest.NoAuth, func(context.Context, rest.Caller, struct {
			ID string `json:"id"`
		}) (rest.None, error) {
			return rest.None{}, nil
		}))
	s.srv, err = edge.New(edge.Options{Guards: guards.Table(), Authorize: guards.Authorize, CountryOf: countryOf,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}, // what a test's connection comes from
		Firewall:       guard.Firewall{Evaluator: s.evaluator, Tokens: tokens{}, Live: alive, Feed: &changetest.Feed{}}.Judge}, es)
	must(t, err)
	s.srv.Raw("GET", "/socket", func(c *fiber.Ctx) error { return c.SendString("ok") })
	s.srv.Raw("GET", "/health/live", func(c *fiber.Ctx) error { return c.SendString("ok") })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const admins = "10.0.0.1" // where the administrator sits

// send makes a request; headers are pairs. Requests come from where
// X-Forwarded-For says.
func (s *service) send(line, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	method, path, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := apidoc.Test(s.srv.App, r)
	must(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	must(s.t, err)
	return res, string(b)
}

// wants makes a request of the section as the administrator and checks the
// answer: a body for 200, else "CODE field field".
func (s *service) wants(method, body string, status int, want string) {
	s.t.Helper()
	method, query, _ := strings.Cut(method, "?")
	res, answer := s.send(method+" "+firewall.RulesPath+"?"+query, body, "x-auth", "admin", "X-Forwarded-For", admins)
	shown := answer
	if res.StatusCode != 200 {
		var p struct {
			Code   string
			Errors []struct{ Field string }
		}
		must(s.t, json.Unmarshal([]byte(answer), &p))
		shown = p.Code
		for _, e := range p.Errors {
			shown += " " + e.Field
		}
	}
	if res.StatusCode != status || shown != want {
		s.t.Errorf("%s?%s %s:\n got %d %s\nwant %d %s", method, query, body, res.StatusCode, answer, status, want)
	}
}

// add adds an active rule that never expires.
func (s *service) add(label, kind, more string) {
	s.t.Helper()
	s.wants("POST", fmt.Sprintf(`{"label":%q,"type":%q,"expireAt":0,"status":"ACTIVE",%s}`, label, kind, more), 200, "{}")
}

// from makes a plain request from an address and checks its status.
func (s *service) from(ip, line string, status int, headers ...string) *http.Response {
	s.t.Helper()
	res, body := s.send(line, "", append([]string{"X-Forwarded-For", ip}, headers...)...)
	if res.StatusCode != status {
		s.t.Errorf("%s from %s: %d %s, want %d", line, ip, res.StatusCode, body, status)
	}
	return res
}
