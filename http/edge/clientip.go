package edge

import (
	"net/netip"
	"strings"

	"castellan/domain/kit/geo"
)

// maxHops is the largest number of trusted proxies in a row.
const maxHops = 10

// ClientIP resolves the address of the real client (SEC-30, D-WAF-11): the other end of the
// socket, peer. If peer is a trusted proxy, it is the right-most address of X-Forwarded-For
// that is not a trusted proxy. Several headers are one list in the order in which they came,
// because a proxy may add a header instead of extending one.
//
// The client wrote the entries further left. They are ignored, however many or malformed they
// are: otherwise a blocked client could send malformed entries to be taken for the proxy. A
// trusted part with an entry that is no address, or with more than ten proxies, comes from a
// faulty proxy; then the result is peer. The result is never IPv4-mapped and has no zone.
func ClientIP(peer netip.Addr, forwarded []string, trusted []netip.Prefix) netip.Addr {
	peer = peer.Unmap().WithZone("")
	if !contains(trusted, peer) {
		return peer
	}
	client, hops := peer, 0
	for i := len(forwarded) - 1; i >= 0; i-- {
		list := forwarded[i]
		for more := true; more; {
			var hop string
			if at := strings.LastIndexByte(list, ','); at >= 0 {
				list, hop = list[:at], list[at+1:]
			} else {
				hop, more = list, false
			}
			addr, err := netip.ParseAddr(strings.Trim(hop, " \t"))
			if err != nil || addr.Zone() != "" {
				return peer
			}
			client = addr.Unmap()
			if !contains(trusted, client) {
				return client
			}
			if hops++; hops > maxHops {
				return peer
			}
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

// country accepts the code of a country and nothing else: databases and proxies
// have codes of their own for "unknown", proxies and regions (SEC-30).
func country(s string) string {
	if !geo.Assigned(s) {
		return ""
	}
	return s
}
