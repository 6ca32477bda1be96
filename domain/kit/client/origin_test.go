package client

import (
	"net/netip"
	"testing"
)

// An origin has the blocks of its address, whatever its form.
func TestOrigin(t *testing.T) {
	for _, in := range []string{"203.0.113.9", "::ffff:203.0.113.9", "2001:db8:1:2ff:3:4:5:6", "fe80::1%eth0", ""} {
		a, _ := netip.ParseAddr(in)
		want := Origin{a, PrefixOf(in), Site(a), Region(Prefix(a))}
		if got := From(a); got != want || (got.Prefix == "") != (in == "") {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}
