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
	"castellan/domain/kit/storetest"
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
	storetest.Must(t, w.Check(t.Context(), "GET /a", c, &r))
	return r
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
	storetest.Is(t, w.Check(t.Context(), "GET /a", client, &r), errBroken)
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
	x := storetest.Value(e.Explain(t.Context(), "GET /a", c))(t)
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
		storetest.Must(t, a.Add(t.Context(), author, r))
		detail := book.rows[len(book.rows)-1].Detail
		for _, part := range []string{want, ", expireAt", ", dryRun", ", limit 7"} {
			storetest.Equal(t, strings.Contains(detail, part), strings.Contains(want, part), detail, want)
		}
	}
}
