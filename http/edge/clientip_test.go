package edge

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var (
	proxies  = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	proxy    = netip.MustParseAddr("10.0.0.1")
	stranger = netip.MustParseAddr("203.0.113.9")
)

func TestClientIP(t *testing.T) {
	many := strings.Repeat(", 10.0.0.2", 10)
	for _, c := range []struct {
		name string
		peer netip.Addr
		xff  []string
		want string
	}{
		{"no header", proxy, nil, "10.0.0.1"},
		{"untrusted peer", stranger, []string{"1.2.3.4"}, "203.0.113.9"},
		{"trusted peer", proxy, []string{"1.2.3.4"}, "1.2.3.4"},
		{"the right-most counts", proxy, []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
		{"trusted hops are passed over", proxy, []string{"6.6.6.6, 1.2.3.4, 10.9.9.9,fd00::1"}, "1.2.3.4"},
		{"all trusted", proxy, []string{"10.1.1.1, 10.2.2.2"}, "10.1.1.1"},
		{"garbage by the client is not reached", proxy, []string{"<script>, 1.2.3.4"}, "1.2.3.4"},
		{"garbage on the way", proxy, []string{"1.2.3.4, unknown, 10.0.0.2"}, "10.0.0.1"},
		{"empty entry", proxy, []string{"1.2.3.4,"}, "10.0.0.1"},
		{"empty header", proxy, []string{""}, "10.0.0.1"},
		{"two headers", proxy, []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
		{"two headers, the last trusted", proxy, []string{"6.6.6.6, 1.2.3.4", "10.0.0.5"}, "1.2.3.4"},
		{"garbage in the client's own header", proxy, []string{"<script>", "1.2.3.4"}, "1.2.3.4"},
		{"any number of forged entries", proxy, []string{strings.Repeat("6.6.6.6, ", 50) + "1.2.3.4"}, "1.2.3.4"},
		{"ten proxies", proxy, []string{"1.2.3.4" + many}, "1.2.3.4"},
		{"eleven proxies", proxy, []string{"1.2.3.4" + many + ", 10.0.0.3"}, "10.0.0.1"},
		{"port", proxy, []string{"1.2.3.4:80"}, "10.0.0.1"},
		{"zone", proxy, []string{"fe80::1%eth0"}, "10.0.0.1"},
		{"IPv6", proxy, []string{"2001:db8::1"}, "2001:db8::1"},
		{"mapped", proxy, []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
		{"mapped, hexadecimal", proxy, []string{"::ffff:102:304"}, "1.2.3.4"},
		{"mapped peer", netip.MustParseAddr("::ffff:10.0.0.1"), []string{"1.2.3.4"}, "1.2.3.4"},
		{"mapped trusted hop", proxy, []string{"1.2.3.4, ::ffff:10.0.0.7"}, "1.2.3.4"},
		{"leading zero", proxy, []string{"01.2.3.4"}, "10.0.0.1"},
	} {
		if got := ClientIP(c.peer, c.xff, proxies); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// FuzzClientIP: the answer is the peer or an address that the header names, in
// normal form; an untrusted peer is always its own answer; and the address
// that a trusted proxy appends decides over everything to its left.
func FuzzClientIP(f *testing.F) {
	for _, s := range []string{"1.2.3.4", "6.6.6.6, 1.2.3.4", "unknown", "", ",", "::ffff:1.2.3.4, 10.0.0.2",
		"fe80::1%eth0", "1.2.3.4:5", "[::1]", "10.0.0.1,10.0.0.2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := ClientIP(stranger, []string{header}, proxies); got != stranger {
			t.Fatalf("a stranger became %v", got)
		}
		got := ClientIP(proxy, []string{header}, proxies)
		if got != proxy {
			var named []netip.Addr
			for _, hop := range strings.Split(header, ",") {
				if a, err := netip.ParseAddr(strings.Trim(hop, " \t")); err == nil {
					named = append(named, a.Unmap())
				}
			}
			if !slices.Contains(named, got) || got.Is4In6() || got.Zone() != "" {
				t.Fatalf("%v out of %q", got, header)
			}
		}
		for _, appended := range [][]string{{header + ", 198.51.100.7"}, {header, "198.51.100.7"}} {
			if got := ClientIP(proxy, appended, proxies); got.String() != "198.51.100.7" {
				t.Fatalf("%q outranks the proxy's own entry: %v", header, got)
			}
		}
	})
}

func TestCountry(t *testing.T) {
	for in, want := range map[string]string{"TR": "TR", "XK": "", "QA": "QA", "tr": "", "": "", "TUR": "", "T1": "",
		"XX": "", "ZZ": "", "EU": "", "AP": "", "AA": "", "QZ": "", "XA": "", "A1": ""} {
		if got := country(in); got != want {
			t.Errorf("country(%q) = %q, want %q", in, got, want)
		}
	}
}
