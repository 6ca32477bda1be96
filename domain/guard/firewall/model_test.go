package firewall_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
)

var ruleSets = flag.Int("rulesets", 5_000, "how many random rule sets are compared with the model; 1000000 in a "+
	"long run")

// model implements section 4.5 of the interface literally: it checks every rule, one after another.
func model(rules []firewall.Rule, app, resource string, c firewall.Client, now int64) (firewall.Verdict, []string) {
	targeted := map[firewall.Type]bool{}
	force := false
	var rates []string
	for _, r := range rules {
		if r.AppID != app || r.Status != "ACTIVE" || r.ExpireAt > 0 && r.ExpireAt <= now {
			continue
		}
		if !r.AllResources && !slices.Contains(r.Resources, resource) {
			continue
		}
		if r.DryRun && r.Type != firewall.RateLimit {
			continue
		}
		hit := false
		switch r.EntityType {
		case firewall.UserID:
			hit = c.UserID != "" && (r.AllEntities || slices.Contains(r.Entities, c.UserID))
		case firewall.AppID:
			hit = c.Service != "" && (r.AllEntities || slices.Contains(r.Entities, c.Service))
		case firewall.CountryCode:
			hit = c.Country != "" && (r.AllEntities || slices.Contains(r.Entities, c.Country))
		case firewall.IP:
			hit = c.IP.IsValid() && r.AllEntities
			for _, e := range r.Entities {
				if strings.Contains(e, "/") {
					hit = hit || netip.MustParsePrefix(e).Contains(c.IP)
					continue
				}
				a := netip.MustParseAddr(e)
				hit = hit || a == c.IP
				if r.Type == firewall.RateLimit && a.Is6() && c.IP.Is6() {
					x, y := a.As16(), c.IP.As16()
					hit = hit || string(x[:8]) == string(y[:8])
				}
			}
		}
		force = force || r.Type == firewall.WhitelistForce
		if hit && r.Type == firewall.RateLimit {
			rates = append(rates, r.Label)
		} else if hit {
			targeted[r.Type] = true
		}
	}
	switch {
	case targeted[firewall.WhitelistForce]:
		return firewall.Allow, nil
	case force:
		return firewall.Deny, nil
	case targeted[firewall.Blacklist]:
		return firewall.Deny, nil
	case targeted[firewall.Whitelist], len(rates) == 0:
		return firewall.Allow, nil
	}
	slices.Sort(rates)
	return firewall.Count, rates
}

// The values of random rules are few, so that rules overlap.
var (
	types = []firewall.Type{firewall.RateLimit, firewall.Whitelist, firewall.Blacklist, firewall.WhitelistForce,
		firewall.RateLimit, firewall.Blacklist}
	entities = map[firewall.EntityType][]string{
		firewall.UserID:      {"u1", "u2", "u3"},
		firewall.CountryCode: {"TR", "DE", "US"},
		firewall.AppID:       {"wallet", "shop"},
		firewall.IP: {"192.0.2.1", "192.0.2.2", "192.0.2.0/24", "192.0.0.0/14", "192.0.2.0/25", "0.0.0.0/0",
			"128.0.0.0/1", "192.0.2.1/32", "2001:db8::1",
			"2001:db8::2/128", "2001:db8::/64", "2001:db8::/33", "::/0", "2001:db8:0:1::/63", "2001:db8::8000:0/97"},
	}
	resources = []string{"GET /a", "POST /a", "GET /a/{id}"}
	asked     = append([]string{"GET *"}, resources...)
	clients   = []string{"", "192.0.2.1", "192.0.2.2", "192.0.2.200", "192.3.255.255", "10.0.0.1", "2001:db8::1",
		"2001:db8::2", "2001:db8:0:1::1", "2001:db8:8000::1", "fe80::1"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func some[T any](r *rand.Rand, list []T, most int) (out []T) {
	for range r.IntN(most + 1) {
		out = append(out, pick(r, list))
	}
	return out
}

func randomRule(r *rand.Rand, i int) firewall.Rule {
	t := []firewall.EntityType{firewall.UserID, firewall.IP, firewall.CountryCode, firewall.IP, firewall.AppID}[r.IntN(5)]
	rule := firewall.Rule{AppID: "API", Label: fmt.Sprint("r", i), Type: pick(r, types), EntityType: t,
		Entities: some(r, entities[t], 3), Resources: some(r, resources, 2),
		AllEntities: r.IntN(6) == 0, AllResources: r.IntN(5) == 0, Status: firewall.Active,
		ExpireAt: pick(r, []int64{0, 0, 999, 1000, 1001}), DryRun: r.IntN(10) == 0}
	if r.IntN(10) == 0 {
		rule.AppID = "OTHER"
	}
	if r.IntN(10) == 0 {
		rule.Status = firewall.Inactive
	}
	if rule.Type == firewall.RateLimit {
		rule.PeriodMs, rule.Limit = new(int64(1000)), new(int64(2))
	}
	rule.Canonical(firewall.Resources{})
	return rule
}

// SEC-33: precedence, expiry to the millisecond, status, application and targets agree with a model that checks every
// rule.
func TestPrecedenceAgainstTheModel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range *ruleSets {
		rules := make([]firewall.Rule, r.IntN(9))
		for i := range rules {
			rules[i] = randomRule(r, i)
		}
		// Compiled before some of the rules expired, and in steps as they are written.
		s := firewall.Compile(rules, "API", pick(r, []int64{1, 998, 1000}))
		if n%2 == 0 {
			s = inSteps(r, rules)
		}
		for range 6 {
			c := firewall.Client{UserID: pick(r, []string{"", "u1", "u2", "u9"}),
				Country: pick(r, []string{"", "TR", "DE", "FR"}), Service: pick(r, []string{"", "wallet", "kyc"})}
			if ip := pick(r, clients); ip != "" {
				c.IP = netip.MustParseAddr(ip)
			}
			same(t, n, s, rules, pick(r, asked), c, pick(r, []int64{1000, 1001}))
		}
	}
}

// inSteps writes rules over others, some at a time.
func inSteps(r *rand.Rand, rules []firewall.Rule) *firewall.Snapshot {
	before := slices.Clone(rules[:r.IntN(len(rules)+1)])
	var late []firewall.Rule
	for i := range before {
		if r.IntN(3) == 0 {
			late = append(late, before[i])
			before[i] = randomRule(r, i)
		}
	}
	s := firewall.Compile(before, "API", pick(r, []int64{1, 998}))
	late = append(late, rules[len(before):]...)
	for len(late) > 0 {
		k := 1 + r.IntN(len(late))
		s, late = s.With(late[:k], pick(r, []int64{1, 998, 1000})), late[k:]
	}
	return s
}

func same(t *testing.T, n int, s *firewall.Snapshot, rules []firewall.Rule, resource string, c firewall.Client,
	now int64) {
	t.Helper()
	want, wantRates := model(rules, "API", resource, c, now)
	got, found := s.Judge(resource, c, now, nil)
	var rates []string
	for _, f := range found {
		rates = append(rates, f.Label)
	}
	slices.Sort(rates)
	if got != want || !slices.Equal(rates, wantRates) {
		t.Fatalf("set %d, %s by %+v at %d: %v %v, the model says %v %v, of\n%+v", n, resource, c, now, got, rates, want,
			wantRates, rules)
	}
	// The user makes no difference if none is needed.
	if !s.Needs(resource).User {
		c.UserID = "client"
		if v, _ := s.Judge(resource, c, now, nil); v != got {
			t.Fatalf("set %d: the user decides about %s, and is not asked for", n, resource)
		}
	}
	if !s.Needs(resource).Service {
		other := c
		other.Service = "shop"
		if v, _ := s.Judge(resource, other, now, nil); v != got {
			t.Fatalf("set %d: the service client decides about %s, and is not asked for", n, resource)
		}
	}
	// An explanation has the same result.
	w := &firewall.Evaluator{Rules: func() *firewall.Snapshot { return s }, Limiter: ratelimit.NewTable(nil),
		Now: func() time.Time { return time.UnixMilli(now) }}
	c2 := c
	if s.Needs(resource).User {
		c2 = c
	} else {
		c2.UserID = ""
	}
	x, err := w.Explain(context.Background(), resource, c2)
	if err != nil || (x.Decision == firewall.Refused) != (got == firewall.Deny) || x.Decision == firewall.RateLimited {
		t.Fatalf("set %d: explained as %+v, %v; judged as %v", n, x, err, got)
	}
	counted := 0
	for _, k := range x.Rules {
		if k.Counted {
			counted++
		}
	}
	if counted != len(rates) {
		t.Fatalf("set %d: %d counters explained, %d rates", n, counted, len(rates))
	}
}

// FuzzRuleSet: the snapshot agrees with the model for all rules and requests derived from some bytes.
func FuzzRuleSet(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i*7, uint8(i), uint8(3*i))
	}
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64, size, at uint8) {
		r := rand.New(rand.NewPCG(seed1, seed2))
		rules := make([]firewall.Rule, int(size)%40)
		for i := range rules {
			rules[i] = randomRule(r, i)
		}
		s := firewall.Compile(rules, "API", 1)
		c := firewall.Client{UserID: pick(r, []string{"", "u1", "u2", "u9"}),
			Country: pick(r, []string{"", "TR", "DE", "FR"})}
		if ip := clients[int(at)%len(clients)]; ip != "" {
			c.IP = netip.MustParseAddr(ip)
		}
		same(t, 0, s, rules, pick(r, asked), c, 1000)
	})
}
