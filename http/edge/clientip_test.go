package edge

import (
	"bytes"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"castellan/domain/kit/geo"
	"castellan/domain/kit/storetest"
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
		{"empty elements", proxy, []string{"6.6.6.6, , 1.2.3.4, ,", ", "}, "1.2.3.4"},
		{"empty header", proxy, []string{""}, "10.0.0.1"},
		{"two headers", proxy, []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
		{"two headers, the last trusted", proxy, []string{"6.6.6.6, 1.2.3.4", "10.0.0.5"}, "1.2.3.4"},
		{"garbage in the client's own header", proxy, []string{"<script>", "1.2.3.4"}, "1.2.3.4"},
		{"any number of forged entries", proxy, []string{strings.Repeat("6.6.6.6, ", 50) + "1.2.3.4"}, "1.2.3.4"},
		{"ten proxies", proxy, []string{"1.2.3.4" + many}, "1.2.3.4"},
		{"eleven proxies", proxy, []string{"1.2.3.4" + many + ", 10.0.0.3"}, "10.0.0.1"},
		{"port", proxy, []string{"1.2.3.4:80, 10.0.0.2:443"}, "1.2.3.4"},
		{"no port", proxy, []string{"1.2.3.4:http"}, "10.0.0.1"},
		{"port beyond 65535", proxy, []string{"1.2.3.4:65536"}, "10.0.0.1"},
		{"brackets", proxy, []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"brackets and port", proxy, []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"brackets and garbage", proxy, []string{"[2001:db8::1]x"}, "10.0.0.1"},
		{"brackets around IPv4", proxy, []string{"[1.2.3.4]:80"}, "10.0.0.1"},
		{"quotes", proxy, []string{`"[2001:db8::1]:443", "10.0.0.2"`}, "2001:db8::1"},
		{"an IPv6 address that ends like a port", proxy, []string{"2001:db8::443"}, "2001:db8::443"},
		{"zone", proxy, []string{"fe80::1%eth0"}, "10.0.0.1"},
		{"IPv6", proxy, []string{"2001:db8::1"}, "2001:db8::1"},
		{"mapped", proxy, []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
		{"mapped, hexadecimal", proxy, []string{"::ffff:102:304"}, "1.2.3.4"},
		{"mapped peer", netip.MustParseAddr("::ffff:10.0.0.1"), []string{"1.2.3.4"}, "1.2.3.4"},
		{"mapped trusted hop", proxy, []string{"1.2.3.4, ::ffff:10.0.0.7"}, "1.2.3.4"},
		{"leading zero", proxy, []string{"01.2.3.4"}, "10.0.0.1"},
	} {
		if got, _ := ClientIP(c.peer, c.xff, []string{"for=6.6.6.6"}[:min(1, len(c.xff))], proxies); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// Forwarded (RFC 7239) counts where there is no X-Forwarded-For.
func TestForwarded(t *testing.T) {
	for _, c := range []struct {
		name      string
		peer      netip.Addr
		forwarded string
		want      string
	}{
		{"untrusted peer", stranger, "for=1.2.3.4", "203.0.113.9"},
		{"one", proxy, "for=1.2.3.4;proto=https;by=10.0.0.1", "1.2.3.4"},
		{"the name in capitals, quotes and a port", proxy, `proto=https; For="1.2.3.4:4711"`, "1.2.3.4"},
		{"IPv6", proxy, `for="[2001:db8:cafe::17]:4711"`, "2001:db8:cafe::17"},
		{"the right-most counts", proxy, `for=6.6.6.6, for=1.2.3.4, for=10.0.0.2`, "1.2.3.4"},
		{"a quote that the client opened", proxy, `for="6.6.6.6, for=1.2.3.4`, "1.2.3.4"},
		{"unknown", proxy, "for=1.2.3.4, for=unknown", "10.0.0.1"},
		{"a hidden name", proxy, "for=_hidden", "10.0.0.1"},
		{"without for", proxy, "for=1.2.3.4, proto=https", "10.0.0.1"},
		{"twice", proxy, "for=1.2.3.4;for=5.6.7.8", "10.0.0.1"},
	} {
		if got, _ := ClientIP(c.peer, nil, []string{c.forwarded}, proxies); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// An address that cannot be read is logged and told by its shape, never by its content.
func TestUnreadableAddressIsTold(t *testing.T) {
	var log bytes.Buffer
	s := storetest.Value(New(Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")},
		Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil))(t)
	storetest.Equal(t, s.Unreadable(), "", "before")
	for range 2 {
		do(t, s, "GET", "/none", "", "x-forwarded-for: user-17@host")
	}
	if got := s.Unreadable(); got != "aaaa-99@aaaa" || strings.Count(log.String(), "aaaa-99@aaaa") != 1 ||
		strings.Contains(log.String(), "user-17") {
		t.Errorf("%q, log %s", got, &log)
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
		if got, _ := ClientIP(stranger, []string{header}, []string{header}, proxies); got != stranger {
			t.Fatalf("a stranger became %v", got)
		}
		got, _ := ClientIP(proxy, []string{header}, nil, proxies)
		if got != proxy {
			var named []netip.Addr
			for _, hop := range strings.Split(header, ",") {
				if a, ok := addressOf(strings.Trim(hop, " \t")); ok {
					named = append(named, a)
				}
			}
			if !slices.Contains(named, got) || got.Is4In6() || got.Zone() != "" {
				t.Fatalf("%v out of %q", got, header)
			}
		}
		if got, _ := ClientIP(proxy, nil, []string{header + ", for=198.51.100.7"}, proxies); got.String() != "198.51.100.7" {
			t.Fatalf("%q outranks the proxy's own element: %v", header, got)
		}
		for _, appended := range [][]string{{header + ", 198.51.100.7"}, {header, "198.51.100.7"}} {
			if got, _ := ClientIP(proxy, appended, nil, proxies); got.String() != "198.51.100.7" {
				t.Fatalf("%q outranks the proxy's own entry: %v", header, got)
			}
		}
	})
}

func TestCountry(t *testing.T) {
	for in, want := range map[string]string{"TR": "TR", "XK": "", "QA": "QA", "tr": "", "": "", "TUR": "", "T1": "",
		"XX": "", "ZZ": "", "EU": "", "AP": "", "AA": "", "QZ": "", "XA": "", "A1": ""} {
		storetest.Equal(t, country(in), want, "country", in, "=")
	}
}

// FuzzHeaders: the stored User-Agent and device names are valid UTF-8 within their bounds and a part of the sent
// text. A country is a known code or empty.
func FuzzHeaders(f *testing.F) {
	f.Add("Mozilla/5.0 (X11; Linux)", "TR")
	f.Add(strings.Repeat("ş", maxUserAgent), "tr")
	f.Add("\xff\xfe"+strings.Repeat("\xf0\x9d\x92\xb3", maxUserAgent/4), "ZZ")
	f.Fuzz(func(t *testing.T, agent, from string) {
		var a arena
		a.b.Grow(maxUserAgent)
		got := a.text([]byte(agent), maxUserAgent)
		if !utf8.ValidString(got) || len(got) > maxUserAgent {
			t.Fatalf("%q is kept as %q", agent, got)
		}
		if utf8.ValidString(agent) && len(agent) <= maxUserAgent && got != agent {
			t.Fatalf("%q is kept as %q", agent, got)
		}
		if c := country(from); c != "" && (c != from || !geo.Assigned(c)) {
			t.Fatalf("%q is the country %q", from, c)
		}
	})
}
