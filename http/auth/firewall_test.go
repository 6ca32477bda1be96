package auth_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/fault"
	"castellan/domain/permit/servicekey"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

// meter is a limiter whose demands are those of one rate.
type meter struct {
	full bool
	no   error
	keys []ratelimit.Key
}

func (m *meter) Allow(_ context.Context, demands []ratelimit.Demand, stands []ratelimit.Standing) (bool, error) {
	for i, d := range demands {
		m.keys = append(m.keys, d.Key)
		if stands[i].Used = 1; m.full {
			stands[i].Used, stands[i].Retry = 4, int64(90*time.Second)
		}
	}
	return !m.full, m.no
}

func (m *meter) Look(context.Context, []ratelimit.Demand, []ratelimit.Standing) error { return nil }

// wall is a firewall in front of an open endpoint and the health checks.
type wall struct {
	*firewall.Evaluator
	*meter
	*apitest.Site
	t     *testing.T
	feed  *countedFeed
	ended bool
	seen  edge.Answered
}

// client knows the key of the shop, from one network.
func (w *wall) client(raw string, from netip.Addr) (servicekey.Client, error) {
	if raw != "key of shop" || !netip.MustParsePrefix("192.0.2.0/24").Contains(from) {
		return servicekey.Client{Name: "shop"}, errors.New("not a key")
	}
	return servicekey.Client{Name: "shop"}, nil
}

// countedFeed counts how often it is caught up.
type countedFeed struct {
	changetest.Feed
	caught int
}

func (f *countedFeed) CatchUp(ctx context.Context) error { f.caught++; return f.Feed.CatchUp(ctx) }

func newWall(t *testing.T, rules ...firewall.Rule) *wall {
	for i := range rules {
		rules[i].AppID, rules[i].Status, rules[i].AllResources = "API", firewall.Active, true
	}
	snapshot := firewall.Compile(rules, "API", time.Now().UnixMilli())
	w := &wall{t: t, meter: &meter{}, feed: &countedFeed{}}
	w.Evaluator = &firewall.Evaluator{Rules: func() *firewall.Snapshot { return snapshot }, Limiter: w.meter,
		Now: time.Now}
	f := auth.Firewall{Evaluator: w.Evaluator, Tokens: apitest.Tokens{}, Feed: w.feed,
		Live: func(string, string, int64) bool { return !w.ended }, Service: w.client}
	w.Site = apitest.Serve(t, edge.Options{Firewall: f.Judge,
		Observe: func(_ context.Context, a edge.Answered) { w.seen = a }, CountryHeader: "x-country",
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}},
		apitest.Endpoints{rest.Get("/x", "", rest.NoAuth, nothing[rest.None]).For(rest.Public)}).As("anonymous")
	w.Server.Raw("GET", "/health/live", func(c *fiber.Ctx) error { return c.SendString("ok") })
	return w
}

// ask sends a request of a user from an address and checks the status.
func (w *wall) ask(path, user, ip string, want int) http.Header {
	w.t.Helper()
	res, _ := w.As(cmp.Or(user, "anonymous")).Send("GET "+path, "", "X-Forwarded-For", ip, "x-country", "TR")
	if res.StatusCode != want {
		w.t.Errorf("%s of %q from %s: %d, want %d", path, user, ip, res.StatusCode, want)
	}
	return res.Header
}

// A rule about users applies only to the user of a valid session.
func TestFirewallKnowsTheUser(t *testing.T) {
	w := newWall(t, firewall.Rule{Label: "u1", Type: firewall.Blacklist, EntityType: firewall.UserID,
		Entities: []string{"u1"}})
	w.ask("/x", "u1", "192.0.2.7", 403)
	if w.seen.Caller.UserID != "u1" || w.Denied.Load() != 1 || w.Allowed.Load() != 0 {
		t.Errorf("the audit would see %q; %d denied, %d allowed", w.seen.Caller.UserID, w.Denied.Load(), w.Allowed.Load())
	}
	for name := range w.ask("/x", "u2", "192.0.2.7", 200) {
		if strings.HasPrefix(strings.ToLower(name), "ratelimit") {
			t.Errorf("the header %s without a rule about rates", name)
		}
	}
	w.ask("/x", "", "192.0.2.7", 200)
	w.ask("/x", "nonsense", "192.0.2.7", 200)
	w.ended = true
	if w.ask("/x", "u1", "192.0.2.7", 200); w.Allowed.Load() != 4 || w.Unsure.Load() != 0 {
		t.Errorf("%d allowed, %d unsure", w.Allowed.Load(), w.Unsure.Load())
	}
}

// A rule about service clients applies only to the client of a valid key.
func TestFirewallKnowsTheServiceClient(t *testing.T) {
	w := newWall(t, firewall.Rule{Label: "shop", Type: firewall.Blacklist, EntityType: firewall.AppID,
		Entities: []string{"shop"}})
	ask := func(key, from string, want int) {
		t.Helper()
		headers := []string{"X-Forwarded-For", from}
		if key != "" {
			headers = append(headers, "service-auth", key)
		}
		if status, _ := w.Call("GET /x", "", headers...); status != want {
			t.Errorf("%q from %s: %d, want %d", key, from, status, want)
		}
	}
	ask("key of shop", "192.0.2.7", 403)
	if w.seen.Caller.Service != "shop" {
		t.Errorf("the audit would see the service client %q", w.seen.Caller.Service)
	}
	ask("key of shop", "198.51.100.7", 200)
	ask("another key", "192.0.2.7", 200)
	ask("", "192.0.2.7", 200)
	w.feed.Stale = true // the key cannot be checked
	ask("key of shop", "192.0.2.7", 200)
	w.feed.Stale = false
	f := auth.Firewall{Evaluator: w.Evaluator, Tokens: apitest.Tokens{}, Feed: w.feed}
	w.Site = apitest.Serve(t, edge.Options{Firewall: f.Judge,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}}).As("anonymous")
	ask("key of shop", "192.0.2.7", 404) // a firewall without service clients
}

// Without a rule about users no token is looked at.
func TestFirewallLeavesTokensAlone(t *testing.T) {
	w := newWall(t, firewall.Rule{Label: "ip", Type: firewall.Blacklist, EntityType: firewall.IP,
		Entities: []string{"192.0.2.0/24"}})
	if w.ask("/x", "u1", "192.0.2.7", 403); w.seen.Caller.UserID != "" {
		t.Errorf("the user %q was established", w.seen.Caller.UserID)
	}
	w.ask("/x", "u1", "198.51.100.7", 200)
	country := newWall(t, firewall.Rule{Label: "tr", Type: firewall.Blacklist, EntityType: firewall.CountryCode,
		Entities: []string{"TR"}})
	country.ask("/x", "u1", "198.51.100.7", 403)
}

// A rate limit answers with the exact time to wait and with its headers. A limiter without an answer refuses.
func TestFirewallLimits(t *testing.T) {
	w := newWall(t, firewall.Rule{Label: "rate", Type: firewall.RateLimit, EntityType: firewall.IP, AllEntities: true,
		PeriodMs: new(int64(60_000)), Limit: new(int64(4))})
	if h := w.ask("/x", "", "192.0.2.7", 200); h.Get("RateLimit") == "" || h.Get("RateLimit-Policy") == "" ||
		len(w.keys) != 1 {
		t.Errorf("%v, %v", h, w.keys)
	}
	w.full = true
	if h := w.ask("/x", "", "192.0.2.7", 429); h.Get("Retry-After") != "90" || h.Get("RateLimit") == "" ||
		w.Limited.Load() != 1 || w.Allowed.Load() != 1 {
		t.Errorf("%v, %d limited, %d allowed", h, w.Limited.Load(), w.Allowed.Load())
	}
	w.no = fault.New(fault.Unavailable, "the counters are away")
	if h := w.ask("/x", "", "192.0.2.7", 503); h.Get("RateLimit") != "" || w.Unsure.Load() != 1 || w.Allowed.Load() != 1 {
		t.Errorf("%v, %d unsure, %d allowed", h, w.Unsure.Load(), w.Allowed.Load())
	}
	open := newWall(t)
	if h := open.ask("/x", "", "192.0.2.7", 200); h.Get("RateLimit") != "" || h.Get("RateLimit-Policy") != "" {
		t.Errorf("headers without a rate: %v", h)
	}
}

// A health check passes a late feed, a rate limit and a whitelist; only a blacklist stops it, and never from this
// machine.
func TestFirewallOfHealthChecks(t *testing.T) {
	w := newWall(t, firewall.Rule{Label: "rate", Type: firewall.RateLimit, EntityType: firewall.IP, AllEntities: true,
		PeriodMs: new(int64(60_000)), Limit: new(int64(4))},
		firewall.Rule{Label: "bad", Type: firewall.Blacklist, EntityType: firewall.IP,
			Entities: []string{"192.0.2.0/24", "127.0.0.0/8"}},
		firewall.Rule{Label: "only", Type: firewall.WhitelistForce, EntityType: firewall.UserID, Entities: []string{"u1"}})
	w.full, w.feed.Stale = true, true
	for ip, want := range map[string]int{"198.51.100.7": 200, "192.0.2.7": 403, "127.0.0.1": 200} {
		w.ask("/health/live", "", ip, want)
		c := firewall.Client{IP: netip.MustParseAddr(ip), UserID: "u1"}
		x, err := w.Evaluator.Explain(t.Context(), "GET /health/live", c)
		if (x.Decision == firewall.Allowed) != (want == 200) || x.Decision == firewall.RateLimited || err != nil {
			t.Errorf("the explanation for %s: %+v, %v", ip, x, err)
		}
	}
	if len(w.keys) != 0 || w.feed.caught != 0 {
		t.Errorf("counted %v, caught up %d times", w.keys, w.feed.caught)
	}
}

// Rules that may be stale are brought up to date first; where that fails the known ones judge.
func TestFirewallCatchesUp(t *testing.T) {
	w := newWall(t, firewall.Rule{Label: "u1", Type: firewall.Blacklist, EntityType: firewall.UserID,
		Entities: []string{"u1"}})
	if w.ask("/x", "", "192.0.2.7", 200); w.feed.caught != 0 {
		t.Errorf("a fresh feed was caught up %d times", w.feed.caught)
	}
	w.feed.Stale = true
	if w.ask("/x", "", "192.0.2.7", 200); w.feed.caught != 1 {
		t.Errorf("a stale feed was caught up %d times", w.feed.caught)
	}
	w.ask("/x", "u1", "192.0.2.7", 200) // whose session it is cannot be judged
	f := auth.Firewall{Evaluator: w.Evaluator, Tokens: apitest.Tokens{}}
	bare := apitest.Serve(t, edge.Options{Firewall: f.Judge}).As("anonymous")
	if status, answer := bare.Call("GET /none", ""); status != 404 {
		t.Errorf("without a feed: %d %s", status, answer)
	}
}
