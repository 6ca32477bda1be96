package rest

import (
	"net/netip"
	"strings"
)

// maxHops is how many entries of X-Forwarded-For are believable.
const maxHops = 10

// ClientIP resolves who is really calling (SEC-30). peer is the socket's other
// end and forwarded the X-Forwarded-For headers as they came. They count only
// when peer is trusted, and are read from the right, where trusted proxies
// write, to the first address that is not theirs: what stands further left was
// written by the client. More than one header, more than ten hops or an entry on
// the way that is no address mean that a proxy is not what it should be; then
// peer itself is the answer. The result is never IPv4-mapped and has no zone.
func ClientIP(peer netip.Addr, forwarded []string, trusted []netip.Prefix) netip.Addr {
	peer = peer.Unmap().WithZone("")
	if len(forwarded) != 1 || !contains(trusted, peer) {
		return peer
	}
	rest := forwarded[0]
	if strings.Count(rest, ",") >= maxHops {
		return peer
	}
	client := peer
	for more := true; more; {
		var hop string
		if i := strings.LastIndexByte(rest, ','); i >= 0 {
			rest, hop = rest[:i], rest[i+1:]
		} else {
			hop, more = rest, false
		}
		addr, err := netip.ParseAddr(strings.Trim(hop, " \t"))
		if err != nil || addr.Zone() != "" {
			return peer
		}
		client = addr.Unmap()
		if !contains(trusted, client) {
			return client
		}
	}
	return client
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// country accepts what can be an ISO 3166-1 alpha-2 code of a country: two
// capital letters outside the ranges that ISO leaves to users and databases use
// for "unknown", proxies and regions (XK, Kosovo, is the exception in use).
func country(s string) string {
	if len(s) != 2 || s[0] < 'A' || s[0] > 'Z' || s[1] < 'A' || s[1] > 'Z' {
		return ""
	}
	switch {
	case s == "AA", s == "ZZ", s == "EU", s == "AP", s[0] == 'Q' && s[1] >= 'M', s[0] == 'X' && s != "XK":
		return ""
	}
	return s
}
