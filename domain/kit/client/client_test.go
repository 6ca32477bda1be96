package client

import (
	"net/netip"
	"testing"
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
		if got := Prefix(netip.MustParseAddr(in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := Prefix(netip.Addr{}); got != "" {
		t.Errorf("the zero address: %q", got)
	}
}
