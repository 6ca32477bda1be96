package firewall_test

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
)

// clock is set by hand.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.ns.Load()) }

func rate(label string, kind firewall.EntityType, limit, periodMs int64) firewall.Rule {
	return firewall.Rule{AppID: "API", Label: label, Type: firewall.RateLimit, PeriodMs: &periodMs, Limit: &limit,
		EntityType: kind, AllEntities: true, AllResources: true, Status: firewall.Active}
}

func evaluator(c *clock, rules ...firewall.Rule) *firewall.Evaluator {
	s := firewall.Compile(rules, "API", c.now().UnixMilli())
	return &firewall.Evaluator{Rules: func() *firewall.Snapshot { return s }, Limiter: ratelimit.NewTable(c.now),
		Now: c.now}
}

var client = firewall.Client{IP: netip.MustParseAddr("192.0.2.1"), UserID: "u1", Country: "TR"}

func check(t *testing.T, w *firewall.Evaluator, c firewall.Client) firewall.Ruling {
	t.Helper()
	var r firewall.Ruling
	if err := w.Check(t.Context(), "GET /a", c, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// D-WAF-06 and 10, to the nanosecond: refused requests count for no rule.
func TestAllOrNothing(t *testing.T) {
	c := new(clock)
	w := evaluator(c, rate("ip", firewall.IP, 2, 1000), rate("user", firewall.UserID, 3, 10_000),
		rate("land", firewall.CountryCode, 100, 1000))
	if r := check(t, w, client); r.Verdict != firewall.Allow ||
		string(r.Policy) != `"ip";q=2;w=1, "user";q=3;w=10, "land";q=100;w=1` ||
		string(r.State) != `"ip";r=1;t=1, "user";r=2;t=10, "land";r=99;t=1` {
		t.Errorf("%+v", r)
	}
	c.ns.Store(1)
	check(t, w, client)
	for range 4 {
		if r := check(t, w, client); r.Verdict != firewall.Count || r.RetryAfter != time.Second-1 {
			t.Errorf("%+v", r)
		}
	}
	c.ns.Store(int64(time.Second) - 1)
	if r := check(t, w, client); r.Verdict != firewall.Count || r.RetryAfter != 1 {
		t.Errorf("%+v", r)
	}
	c.ns.Store(int64(time.Second))
	if r := check(t, w, client); r.Verdict != firewall.Allow {
		t.Errorf("%+v", r)
	}
	// The user has spent three: both rules refuse, and the longer wait is returned.
	if r := check(t, w, client); r.Verdict != firewall.Count || r.RetryAfter != 9*time.Second {
		t.Errorf("%+v", r)
	}
	other := client
	other.IP = netip.MustParseAddr("192.0.2.2")
	if r := check(t, w, other); r.Verdict != firewall.Count || r.RetryAfter != 9*time.Second {
		t.Errorf("%+v", r)
	}
	other.UserID = ""
	for i, want := range []firewall.Verdict{firewall.Allow, firewall.Allow, firewall.Count} {
		if r := check(t, w, other); r.Verdict != want { // the refused requests above were not counted here
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

// One rule has one counter over single addresses of a /64 and networks (SEC-32).
func TestKeys(t *testing.T) {
	r := firewall.Compile([]firewall.Rule{rate("r", firewall.IP, 1, 1)}, "API", 1)
	for ip, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64",
		"2001:db8::ffff:0:0:1": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64"} {
		c := firewall.Client{IP: netip.MustParseAddr(ip)}
		_, rates := r.Judge("GET /a", c, 1, nil)
		if len(rates) != 1 || rates[0].Key(c).String() != want {
			t.Errorf("%s: %v", ip, rates)
		}
	}
}

type broken struct{ ratelimit.Limiter }

var errBroken = errors.New("broken")

func (broken) Allow(context.Context, []ratelimit.Demand, []ratelimit.Standing) (bool, error) {
	return false, errBroken
}

func (broken) Look(context.Context, []ratelimit.Demand, []ratelimit.Standing) error { return errBroken }

// An unavailable counter admits no request, and a rule on trial refuses none.
func TestCounterFails(t *testing.T) {
	c := new(clock)
	w := evaluator(c, rate("r", firewall.IP, 5, 1000))
	w.Limiter = broken{}
	var r firewall.Ruling
	if err := w.Check(t.Context(), "GET /a", client, &r); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Explain(t.Context(), "GET /a", client); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	trial := rate("r", firewall.IP, 5, 1000)
	trial.DryRun = true
	w = evaluator(c, trial)
	w.Limiter = broken{}
	if err := w.Check(t.Context(), "GET /a", client, &r); err != nil || r.Verdict != firewall.Allow {
		t.Errorf("%+v, %v", r, err)
	}
}
