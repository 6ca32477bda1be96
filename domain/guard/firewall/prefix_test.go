package firewall_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"castellan/domain/guard/firewall"
)

// Random networks of every length agree at their edges with a linear search over the prefixes.
func TestNetworks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var list []netip.Prefix
		var rule firewall.Rule
		for range 1 + r.IntN(60) {
			p := randomPrefix(r)
			list = append(list, p)
			rule.Entities = append(rule.Entities, p.String())
		}
		rule.AppID, rule.Label, rule.Type, rule.EntityType, rule.AllResources, rule.Status = "API", "b",
			firewall.Blacklist, firewall.IP, true, firewall.Active
		s := firewall.Compile([]firewall.Rule{rule}, "API", 1)
		for range 200 {
			a := randomPrefix(r).Addr()
			if r.IntN(2) == 0 { // an edge of one of them
				p := list[r.IntN(len(list))]
				a = p.Addr()
				for r.IntN(3) > 0 && a.Next().IsValid() && p.Contains(a.Next()) {
					a = a.Next()
				}
				if r.IntN(3) == 0 && p.Addr().Prev().IsValid() {
					a = p.Addr().Prev()
				}
			}
			want := firewall.Allow
			for _, p := range list {
				if p.Contains(a) {
					want = firewall.Deny
				}
			}
			if got, _ := s.Judge("GET /x", firewall.Client{IP: a}, 1, nil); got != want {
				t.Fatalf("%v in %v: %v, want %v", a, list, got, want)
			}
		}
	}
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	if r.IntN(2) == 0 {
		a := netip.AddrFrom4([4]byte{byte(r.IntN(3)) + 191, byte(r.IntN(4)), byte(r.IntN(256)), byte(r.IntN(256))})
		p, _ := a.Prefix(r.IntN(33))
		return p
	}
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for i := 4; i < 16; i++ {
		if r.IntN(2) == 0 {
			b[i] = byte(r.IntN(256))
		}
	}
	p, _ := netip.AddrFrom16(b).Prefix(r.IntN(129))
	return p
}
