package firewall_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
)

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
