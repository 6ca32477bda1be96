package firewall_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
)

// many returns n rules of allow and deny with e entities each, of all types, half of them for one resource and half
// for all. None targets the client of the benchmark.
func many(n, e int) []firewall.Rule {
	r := rand.New(rand.NewPCG(9, 10))
	rules := make([]firewall.Rule, n)
	for i := range rules {
		rule := firewall.Rule{AppID: "API", Label: fmt.Sprint(i),
			Type: []firewall.Type{firewall.Blacklist, firewall.Whitelist}[i%2], Status: firewall.Active,
			AllResources: i%4 < 2, Resources: []string{"GET /a"},
			EntityType: []firewall.EntityType{firewall.IP, firewall.IP, firewall.UserID, firewall.IP,
				firewall.CountryCode}[i%5]}
		for k := range e {
			switch {
			case rule.EntityType == firewall.CountryCode:
				rule.Entities = append(rule.Entities, []string{"DE", "US", "FR", "IT"}[k%4])
			case rule.EntityType == firewall.UserID:
				rule.Entities = append(rule.Entities, fmt.Sprintf("user-%d-%d", i, k))
			case k%3 == 0:
				rule.Entities = append(rule.Entities,
					fmt.Sprintf("%d.%d.%d.0/%d", 20+r.IntN(100), r.IntN(256), r.IntN(256), 16+r.IntN(9)))
			case k%3 == 1:
				rule.Entities = append(rule.Entities, fmt.Sprintf("2001:db8:%x:%x::/64", r.IntN(65536), r.IntN(65536)))
			default:
				rule.Entities = append(rule.Entities,
					fmt.Sprintf("%d.%d.%d.%d", 20+r.IntN(100), r.IntN(256), r.IntN(256), r.IntN(256)))
			}
		}
		rule.Canonical(firewall.Resources{})
		rules[i] = rule
	}
	return rules
}

// askers are clients that no rule allows or blocks, close to those that some rule does.
func askers() []firewall.Client {
	r := rand.New(rand.NewPCG(11, 12))
	list := make([]firewall.Client, 1024)
	for i := range list {
		list[i] = firewall.Client{UserID: fmt.Sprintf("user-%d", i), Country: "TR",
			IP: netip.AddrFrom4([4]byte{byte(130 + r.IntN(100)), byte(r.IntN(256)), byte(r.IntN(256)),
				byte(r.IntN(256))})}
	}
	return list
}

// BenchmarkLookup compares ten thousand rules with a hundred thousand entities to ten rules with a hundred. The
// larger one may take twice as long.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := firewall.Compile(many(n, 10), "API", 1)
			clients := askers()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if v, _ := s.Judge("GET /a", clients[i%len(clients)], 1, nil); v == firewall.Count {
					b.Fatal("counted")
				}
				i++
			}
		})
	}
}

// hundred returns active rules of all types that a request passes, and limits by address, user and country that count
// it.
func hundred() []firewall.Rule {
	return append(many(97, 10), rate("ip", firewall.IP, 4000, 1), rate("user", firewall.UserID, 4000, 1),
		rate("land", firewall.CountryCode, 4000, 1))
}

// BenchmarkDecision measures a whole decision in process under a hundred rules, with one and three exact windows.
func BenchmarkDecision(b *testing.B) {
	rules := hundred()
	for name, rs := range map[string][]firewall.Rule{"no window": rules[:97], "one window": rules[:98],
		"three windows": rules} {
		b.Run(name, func(b *testing.B) {
			s := firewall.Compile(rs, "API", 1)
			w := &firewall.Evaluator{Rules: func() *firewall.Snapshot { return s }, Limiter: ratelimit.NewTable(nil),
				Now: time.Now}
			c := firewall.Client{IP: netip.MustParseAddr("192.0.2.1"), UserID: "u1", Country: "TR"}
			ctx := context.Background()
			var r firewall.Ruling
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Check(ctx, "GET /a", c, &r); err != nil || r.Verdict == firewall.Deny {
					b.Fatal(r, err)
				}
			}
		})
	}
}

// TestNoAllocation: allow, deny and a limit with a known key do not allocate.
func TestNoAllocation(t *testing.T) {
	s := firewall.Compile(many(1000, 10), "API", 1)
	w := &firewall.Evaluator{Rules: func() *firewall.Snapshot { return s }, Now: time.Now}
	clients := askers()
	var r firewall.Ruling
	i := 0
	if n := testing.AllocsPerRun(2000, func() {
		w.Needs("GET /a")
		if err := w.Check(context.Background(), "GET /a", clients[i%len(clients)], &r); err != nil {
			t.Fatal(err)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	denied := firewall.Client{IP: netip.MustParseAddr("192.0.2.1"), Country: "DE"}
	black := firewall.Compile([]firewall.Rule{{AppID: "API", Label: "b", Type: firewall.Blacklist,
		EntityType: firewall.CountryCode, Entities: []string{"DE"}, AllResources: true, Status: firewall.Active}},
		"API", 1)
	w.Rules = func() *firewall.Snapshot { return black }
	if n := testing.AllocsPerRun(2000, func() {
		if err := w.Check(context.Background(), "GET /a", denied, &r); err != nil || r.Verdict != firewall.Deny {
			t.Fatal("let in")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	counted := evaluator(new(clock), rate("ip", firewall.IP, 10, 1000), rate("land", firewall.CountryCode, 5000, 1000))
	if n := testing.AllocsPerRun(20_000, func() {
		if err := counted.Check(context.Background(), "GET /a", denied, &r); err != nil || len(r.State) == 0 {
			t.Fatal("not counted")
		}
	}); n != 0 {
		t.Errorf("%v allocations of a rate limit", n)
	}
}
