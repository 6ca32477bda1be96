package firewall_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	clusterlimit "castellan/actors/ratelimit"
	"castellan/cluster"
	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpfirewall "castellan/http/guard/firewall"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/guard"
	"castellan/persistence/kit"
)

// service is the section over a real database behind the firewall itself, with
// the guards of the program, tokens that are names, and a clock that is set.
type service struct {
	*apitest.Site
	t         *testing.T
	live      *firewall.Cache
	evaluator *firewall.Evaluator
	audit     audit.Store
	now       atomic.Int64 // epoch ms
}

// both runs a test on a fresh installation on each database.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, serve(t, db)) })
}

// The countries of this test's addresses.
var countries = map[string]string{"192.0.2.1": "TR", "192.0.2.2": "DE"}

// plain are endpoints that do nothing.
var plain = apitest.Endpoints{rest.Get("/a", "", rest.NoAuth, nothing[rest.None]),
	rest.Post("/a", "", rest.User, nothing[rest.None]),
	rest.Get("/p/{id}", "", rest.NoAuth, nothing[struct {
		ID string `json:"id"`
	}])}

func nothing[In any](context.Context, rest.Caller, In) (rest.None, error) { return rest.None{}, nil }

func serve(t *testing.T, db *persistence.DB) *service {
	t.Helper()
	s := &service{t: t}
	s.now.Store(1_000_000)
	now := func() time.Time { return time.UnixMilli(s.now.Load()) }
	store := guard.NewFirewall(db)
	s.live = firewall.NewCache(store, "API", now)
	table, node := ratelimit.NewTable(now), cluster.Solo(slog.New(slog.DiscardHandler))
	keys := clusterlimit.HostedBy(table, node.Address)
	node.Register(keys)
	t.Cleanup(func() { node.Stop(context.Background()) })
	s.audit = kit.NewAudit(db)
	s.evaluator = &firewall.Evaluator{Rules: s.live.Current, Limiter: table,
		Bypass: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, Now: now}
	alive := func(user, _ string, _ int64) bool { return user != "gone" }
	guards := apitest.Guards()
	guards.Live = alive
	known := firewall.NewResources("/base", []string{"GET /a", "GET /p/{id}", "GET /socket",
		"GET " + firewall.RulesPath, "POST " + firewall.RulesPath, "PATCH " + firewall.RulesPath})
	countryOf := func(a netip.Addr) string { return countries[a.String()] }
	inForce := func(context.Context) ([]firewall.Rule, error) { return s.live.Current().Rules(), nil }
	rules := httpfirewall.Group{Admin: &firewall.Admin{Store: store, App: "API", Bypass: s.evaluator.Bypass,
		Known:   known,
		InForce: inForce,
		Changes: admin.Changes{Commit: db, Now: now, Topic: change.Firewall, Follow: s.live.Follow}}}
	explain := httpfirewall.Explain{Evaluator: s.evaluator, Known: known, CountryOf: countryOf,
		Audit: s.audit, App: "API"}
	counters := httpfirewall.Counters{Country: located, Counting: &firewall.Counting{Rules: s.live.Current,
		Counters: &clusterlimit.Counters{Node: node, Kind: keys}, Changes: admin.Changes{Commit: db, Now: now}}}
	guards.Service = func(header string, _ netip.Addr) (servicekey.Client, error) {
		return servicekey.Client{Name: header, Role: header}, nil
	}
	guards.JudgeRole = func(role, _, _ string) resource.Verdict {
		return resource.Verdict{Permission: map[string]resource.Permission{"shop": resource.Allow}[role]}
	}
	s.Site = apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: guards.Authorize, CountryOf: countryOf,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}, // what a test's connection comes from
		Firewall: auth.Firewall{Evaluator: s.evaluator, Tokens: apitest.Tokens{}, Live: alive,
			Feed: &changetest.Feed{}}.Judge},
		rules, explain, counters, httpfirewall.Limits{Evaluator: s.evaluator}, plain).As("anonymous")
	s.Server.Raw("GET", "/socket", func(c *fiber.Ctx) error { return c.SendString("ok") })
	s.Server.Raw("GET", "/health/live", func(c *fiber.Ctx) error { return c.SendString("ok") })
	return s
}

const admins = "10.0.0.1" // where the administrator sits

// wants makes a request of the section as the administrator and checks the
// answer.
func (s *service) wants(method, body string, status int, want string) {
	s.t.Helper()
	method, query, _ := strings.Cut(method, "?")
	res, answer := s.As("admin").Send(method+" "+firewall.RulesPath+"?"+query, body, "X-Forwarded-For", admins)
	if res.StatusCode != 200 {
		answer = apitest.Refusal(answer)
	}
	if res.StatusCode != status || answer != want {
		s.t.Errorf("%s?%s %s:\n got %d %s\nwant %d %s", method, query, body, res.StatusCode, answer, status, want)
	}
}

// add adds an active rule that never expires.
func (s *service) add(label, kind, more string) {
	s.t.Helper()
	s.wants("POST", fmt.Sprintf(`{"label":%q,"type":%q,"expireAt":0,"status":"ACTIVE",%s}`, label, kind, more), 200,
		"{}")
}

// from makes a plain request from an address and checks its status.
func (s *service) from(ip, line string, status int, headers ...string) *http.Response {
	s.t.Helper()
	res, body := s.Send(line, "", append([]string{"X-Forwarded-For", ip}, headers...)...)
	if res.StatusCode != status {
		s.t.Errorf("%s from %s: %d %s, want %d", line, ip, res.StatusCode, body, status)
	}
	return res
}

// located places one network in a country.
func located(a netip.Addr) string {
	if netip.MustParsePrefix("2001:db8::/32").Contains(a) {
		return "DE"
	}
	return ""
}
