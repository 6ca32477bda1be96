package session_test

import (
	"net/netip"
	"slices"
	"testing"

	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/client"
	"castellan/domain/kit/storetest"
	"castellan/persistence/delivery"
)

// The owner is notified of a login from a network that is new to the account. The first login causes no notice, and a
// right password alone makes no network known (D-EXT-07).
func TestNewNetworks(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	var want []string
	for i, c := range []struct {
		ip       string
		complete bool
		told     bool
	}{
		{"203.0.113.9", true, false},
		{"203.0.113.200", true, false}, // the same /24
		{"198.51.100.1", true, true},
		{"198.51.100.77", true, false},
		{"192.0.2.1", false, false},
		{"192.0.2.1", true, true},
		{"2001:db8:1:1::1", true, true},
		{"2001:db8:1:ffff::2", true, false}, // the same /48
		{"2001:db8:2::1", true, true},
		{"::ffff:203.0.113.1", true, false},
	} {
		r := request(1, secret)
		r.Origin, r.Starter.IP = client.From(netip.MustParseAddr(c.ip)), c.ip
		started, err := b.svc.Login(t.Context(), r)
		storetest.Must(t, err)
		if !c.complete {
			continue
		}
		started.Challenge.Starter.IP = c.ip
		b.complete(started, b.starts[i].Command)
		if c.told {
			want = append(want, "user1@example.com new-network "+c.ip)
			slices.Sort(want)
		}
		if got := challengetest.Committed(t, delivery.NewOutbox(b.db)); !slices.Equal(got, want) {
			t.Fatalf("after %s: told %q, want %q", c.ip, got, want)
		}
	}
}
