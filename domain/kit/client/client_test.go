package client

import (
	"net/netip"
	"testing"

	"castellan/domain/kit/storetest"
)

func TestPrefix(t *testing.T) {
	for in, want := range map[string]string{
		"203.0.113.9":                "203.0.113.9/32",
		"::ffff:203.0.113.9":         "203.0.113.9/32",
		"2001:db8:1:2:3:4:5:6":       "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1":       "2001:db8:1:2::/64",
		"2001:db8:1:3::1":            "2001:db8:1:3::/64",
		"fe80::1%eth0":               "fe80::/64",
		"::1":                        "::/64",
		"0:0:0:0:0:ffff:cb00:7109":   "203.0.113.9/32",
		"2001:0DB8:0001:0002::000a":  "2001:db8:1:2::/64",
		"::ffff:203.0.113.9%ignored": "203.0.113.9/32",
	} {
		storetest.Equal(t, Prefix(netip.MustParseAddr(in)), want, in)
	}
	storetest.Equal(t, Prefix(netip.Addr{}), "", "the zero address")
}

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

func TestSite(t *testing.T) {
	for in, want := range map[string]string{
		"203.0.113.9":            "203.0.113.9/32",
		"::ffff:203.0.113.9":     "203.0.113.9/32",
		"2001:db8:1:2ff:3:4:5:6": "2001:db8:1:200::/56",
		"2001:db8:1:300::1":      "2001:db8:1:300::/56",
		"fe80::1%eth0":           "fe80::/56",
	} {
		storetest.Equal(t, Site(netip.MustParseAddr(in)), want, in)
	}
	storetest.Equal(t, Site(netip.Addr{}), "", "the zero address")
}

func TestRegion(t *testing.T) {
	for in, want := range map[string]string{
		"203.0.113.9/32":      "203.0.113.0/24",
		"203.0.114.9/32":      "203.0.114.0/24",
		"2001:db8:1:2ff::/64": "2001:db8:1::/48",
		"2001:db8:2:2ff::/64": "2001:db8:2::/48",
		"":                    "",
		"office":              "office",
	} {
		storetest.Equal(t, Region(in), want, in)
	}
}
