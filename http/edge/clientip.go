package edge

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"castellan/domain/kit/geo"
)

// maxHops is the largest number of trusted proxies in a row.
const maxHops = 10

// ClientIP resolves the address of the real client (SEC-30, D-WAF-11): the other end of the
// socket, peer. If peer is a trusted proxy, it is the right-most address of X-Forwarded-For
// that is not a trusted proxy; without that header, of Forwarded (RFC 7239). Several headers
// are one list in the order in which they came, because a proxy may add a header instead of
// extending one. An address may have a port, brackets and quotes; empty elements do not count
// (RFC 9110, section 5.6.1).
//
// The client wrote the entries further left. They are ignored, however many or malformed they
// are: otherwise a blocked client could send malformed entries to be taken for the proxy. A
// trusted part with an entry that is no address, or with more than ten proxies, comes from a
// faulty proxy; then the result is peer, and unread is the entry. The result is never
// IPv4-mapped and has no zone.
func ClientIP(peer netip.Addr, xff, forwarded []string, trusted []netip.Prefix) (client netip.Addr, unread string) {
	peer = peer.Unmap().WithZone("")
	if !contains(trusted, peer) {
		return peer, ""
	}
	read, headers := addressOf, xff
	if len(xff) == 0 {
		read, headers = forwardedFor, forwarded
	}
	client, hops := peer, 0
	for i := len(headers) - 1; i >= 0; i-- {
		list := headers[i]
		for more := true; more; {
			var hop string
			// A comma ends an element also within quotes, which a client may have opened.
			if at := strings.LastIndexByte(list, ','); at >= 0 {
				list, hop = list[:at], list[at+1:]
			} else {
				hop, more = list, false
			}
			if hop = strings.Trim(hop, " \t"); hop == "" {
				continue
			}
			addr, ok := read(hop)
			if !ok {
				return peer, hop
			}
			client = addr
			if !contains(trusted, client) {
				return client, ""
			}
			if hops++; hops > maxHops {
				return peer, hop
			}
		}
	}
	return client, ""
}

// forwardedFor reads the parameter for of an element of Forwarded.
func forwardedFor(element string) (a netip.Addr, ok bool) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if ok { // twice: which one is the proxy's?
			return netip.Addr{}, false
		}
		if a, ok = addressOf(value); !ok {
			return a, false
		}
	}
	return a, ok
}

// addressOf reads an address as proxies write it: ADDRESS, IPV4:PORT, [IPV6] or [IPV6]:PORT, in quotes or not.
func addressOf(s string) (netip.Addr, bool) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if inner, port, found := strings.Cut(strings.TrimPrefix(s, "["), "]"); found && s[0] == '[' {
		a, err := netip.ParseAddr(inner)
		return a.Unmap(), err == nil && a.Is6() && a.Zone() == "" && (port == "" || port[0] == ':' && isPort(port[1:]))
	}
	if host, port, found := strings.Cut(s, ":"); found && isPort(port) {
		if a, err := netip.ParseAddr(host); err == nil {
			return a, a.Is4()
		}
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap(), err == nil && a.Zone() == ""
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// shape describes a text without its content: digits are 9 and letters are a.
func shape(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return '9'
		case unicode.IsLetter(r):
			return 'a'
		case r > ' ' && r < 0x7f:
			return r
		}
		return '?'
	}, s[:min(len(s), 48)])
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// country accepts the code of a country and nothing else: databases and proxies
// have codes of their own for "unknown", proxies and regions (SEC-30).
func country(s string) string {
	if !geo.Assigned(s) {
		return ""
	}
	return s
}
