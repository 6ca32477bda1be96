package firewall_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
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

// reasons explains a request, as "label reason matched" for each rule.
func reasons(t *testing.T, e *firewall.Evaluator, c firewall.Client) (string, firewall.Explanation) {
	t.Helper()
	x, err := e.Explain(t.Context(), "GET /a", c)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, k := range x.Rules {
		text := k.Rule.Label + " " + string(k.Reason)
		if k.Matched {
			text += " matched"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", "), x
}

// A rule that is of another application, inactive, expired or of another resource does not match, and the reason says
// so. An expired rule has no effect from its very millisecond.
func TestReasonsOfRulesWithoutEffect(t *testing.T) {
	c := new(clock)
	c.ns.Store(int64(time.Second))
	rules := []firewall.Rule{block("app", "192.0.2.1"), block("off", "192.0.2.1"), block("ended", "192.0.2.1"),
		block("path", "192.0.2.1"), block("other", "192.0.2.9"), block("until", "192.0.2.9")}
	for i := range rules {
		rules[i].AppID = "API"
	}
	rules[0].AppID, rules[1].Status, rules[2].ExpireAt, rules[5].ExpireAt = "X", "INACTIVE", 1000, 1001
	rules[3].AllResources, rules[3].Resources = false, []string{"GET /b"}
	got, x := reasons(t, evaluator(c, rules...), client)
	if want := "app OTHER_APPLICATION, off INACTIVE, ended EXPIRED, path OTHER_RESOURCE, other OTHER_ENTITY, " +
		"until OTHER_ENTITY"; got != want || x.Decision != firewall.Allowed || x.DecidedBy != "" {
		t.Errorf("%s, %+v", got, x)
	}
}

// A client of a bypassed network is never refused or counted, whatever the rules are.
func TestBypassedClients(t *testing.T) {
	c := new(clock)
	deny := block("deny", "192.0.2.1")
	deny.AppID = "API"
	e := evaluator(c, deny, rate("one", firewall.IP, 1, 1000))
	e.Bypass = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/31")}
	for range 3 {
		if r := check(t, e, client); r.Verdict != firewall.Allow || len(r.Policy)+len(r.State) != 0 {
			t.Errorf("%+v", r)
		}
	}
	got, x := reasons(t, e, client)
	if got != "deny BYPASSED matched, one BYPASSED matched" || x.Decision != firewall.Allowed || x.DecidedBy != "" {
		t.Errorf("%s, %+v", got, x)
	}
	e.Bypass = nil
	if r := check(t, e, client); r.Verdict != firewall.Deny || e.Denied.Load() != 1 {
		t.Errorf("%+v", r)
	}
	if got, x = reasons(t, e, client); got != "deny DECIDES matched, one OUTRANKED matched" ||
		x.Decision != firewall.Refused || x.DecidedBy != "deny" {
		t.Errorf("%s, %+v", got, x)
	}
}

// A rule on trial refuses nothing. The number of requests that only it would have refused is counted.
func TestRulesOnTrial(t *testing.T) {
	c := new(clock)
	deny, limit := block("deny", "192.0.2.9"), rate("one", firewall.IP, 1, 1000)
	deny.AppID, deny.DryRun, limit.DryRun = "API", true, true
	e := evaluator(c, deny, limit)
	for i, want := range []int64{0, 1, 2} { // from the second request on the limit would refuse
		if r := check(t, e, client); r.Verdict != firewall.Allow || e.Tried.Load() != want {
			t.Errorf("%d: %+v, tried %d", i, r, e.Tried.Load())
		}
	}
	blocked := client
	blocked.IP = netip.MustParseAddr("192.0.2.9")
	if r := check(t, e, blocked); r.Verdict != firewall.Allow || e.Tried.Load() != 3 {
		t.Errorf("%+v, tried %d", r, e.Tried.Load())
	}
	if got, x := reasons(t, e, blocked); got != "deny DRY_RUN matched, one DRY_RUN matched" ||
		x.Decision != firewall.Allowed {
		t.Errorf("%s, %+v", got, x)
	}
}

// The explanation of a full limit names it and the rest of its time, and counts nothing itself.
func TestExplainedLimits(t *testing.T) {
	c := new(clock)
	e := evaluator(c, rate("two", firewall.IP, 2, 1000))
	for i, want := range []string{"two WITHIN_LIMIT matched", "two WITHIN_LIMIT matched", "two OVER_LIMIT matched"} {
		for range 2 {
			got, x := reasons(t, e, client)
			over := i == 2
			if got != want || x.Rules[0].Used != int64(i) || !x.Rules[0].Counted ||
				(x.Decision == firewall.RateLimited) != over || (x.DecidedBy == "two") != over {
				t.Errorf("after %d: %s, %+v", i, got, x)
			}
		}
		check(t, e, client)
	}
	c.ns.Store(1)
	if _, x := reasons(t, e, client); x.Rules[0].ResetMs != 1000 { // rounded up
		t.Errorf("%+v", x)
	}
	e.Limiter = nil
	if got, x := reasons(t, e, client); got != "two COUNTS matched" || x.Decision != firewall.Allowed {
		t.Errorf("%s, %+v", got, x)
	}
}

// Of equal rules the first one decides. A whitelist_force that names the client outranks all, one that does not name it
// outranks a blacklist, and a blacklist a whitelist.
func TestDecidingRule(t *testing.T) {
	rule := func(label string, kind firewall.Type, ip string) firewall.Rule {
		r := block(label, ip)
		r.AppID, r.Type = "API", kind
		return r
	}
	const mine, other = "192.0.2.1", "192.0.2.9"
	all := []firewall.Rule{rule("w1", firewall.Whitelist, mine), rule("w2", firewall.Whitelist, mine),
		rule("b1", firewall.Blacklist, mine), rule("b2", firewall.Blacklist, mine),
		rule("k1", firewall.WhitelistForce, other), rule("k2", firewall.WhitelistForce, other),
		rule("f1", firewall.WhitelistForce, mine), rule("f2", firewall.WhitelistForce, mine)}
	for n, want := range map[int]string{1: "w1", 2: "w1", 3: "b1", 4: "b1", 5: "k1", 6: "k1", 7: "f1", 8: "f1"} {
		_, x := reasons(t, evaluator(new(clock), all[:n]...), client)
		if x.DecidedBy != want || (x.Decision == firewall.Refused) != (want == "b1" || want == "k1") {
			t.Errorf("of %d rules: %s by %s, want %s", n, x.Decision, x.DecidedBy, want)
		}
	}
}

// A health check is blocked by a blacklist alone, unless a whitelist_force targets its client, and counted then.
func TestBlacklistedClients(t *testing.T) {
	rule := func(label string, kind firewall.Type, ips ...string) firewall.Rule {
		return firewall.Rule{Label: label, AppID: "API", Status: firewall.Active, Type: kind, EntityType: firewall.IP,
			Entities: ips, AllResources: true}
	}
	w := evaluator(&clock{}, rule("black", firewall.Blacklist, "192.0.2.1", "192.0.2.2"),
		rule("force", firewall.WhitelistForce, "192.0.2.2", "192.0.2.4"), rule("white", firewall.Whitelist, "192.0.2.3"))
	denied := int64(0)
	for ip, want := range map[string]bool{"192.0.2.1": true, "192.0.2.2": false, "192.0.2.3": false, "192.0.2.4": false,
		"192.0.2.5": false} {
		if want {
			denied++
		}
		if got := w.Blacklisted("GET /health", firewall.Client{IP: netip.MustParseAddr(ip)}); got != want {
			t.Errorf("%s: %t", ip, got)
		}
	}
	if got := int64(w.Denied.Load()); got != denied {
		t.Errorf("%d denied, want %d", got, denied)
	}
}

// The audit of a rule says what the rule does, in bounded length.
func TestAuditOfRules(t *testing.T) {
	expires := time.UnixMilli(1_900_000_000_000).UnixMilli()
	for want, edit := range map[string]func(*firewall.Rule){
		`, type "blacklist", entityType "IP", entities ["192.0.2.9"], allResources true, status`: func(*firewall.Rule) {},
		", expireAt 1900000000000": func(r *firewall.Rule) { r.ExpireAt = expires },
		", dryRun true":            func(r *firewall.Rule) { r.DryRun = true },
		`, type "rate_limit", periodMs 60000, limit 7, entityType "IP", allEntities true, `: func(r *firewall.Rule) {
			r.Type, r.AllEntities, r.Entities = firewall.RateLimit, true, nil
			r.Limit, r.PeriodMs = new(int64(7)), new(int64(60_000))
		},
	} {
		a, book, author := desk()
		r := block("one", "192.0.2.9")
		edit(&r)
		if err := a.Add(t.Context(), author, r); err != nil {
			t.Fatal(err)
		}
		detail := book.rows[len(book.rows)-1].Detail
		for _, part := range []string{want, ", expireAt", ", dryRun", ", limit 7"} {
			if strings.Contains(detail, part) != strings.Contains(want, part) {
				t.Errorf("%q, want %q", detail, want)
			}
		}
	}
}

// The acts of the audit that a rehearsal can place name a method and a path.
func TestPlacedActs(t *testing.T) {
	all := firewall.Placed()
	if len(all) == 0 {
		t.Error("no act is placed")
	}
	for act, at := range all {
		if method, path, ok := strings.Cut(at, " "); !ok || method == "" || !strings.HasPrefix(path, "/") {
			t.Errorf("%s at %q", act, at)
		}
	}
}
