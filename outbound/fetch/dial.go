package fetch

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
)

// ErrRefused is the error of a Guard. It is permanent: a name that resolves to a refused address is
// not a valid target.
var ErrRefused = errors.New("the address must not be called")

// Guard prevents strangers from reaching, through this process, hosts that only this process can reach (SEC-37).
type Guard struct {
	Private  bool // loopback, private networks and every port
	Loopback bool // nothing but loopback, for plain http
}

const httpsPort = 443

// Judge is for net.Dialer.Control. It checks an address after its name was resolved and before anything is sent to it.
// So a name cannot resolve to one address for the check and to another for the call.
func (g Guard) Judge(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !g.admits(to) {
		return ErrRefused
	}
	return nil
}

func (g Guard) admits(to netip.AddrPort) bool {
	a := to.Addr().Unmap()
	if g.Loopback {
		return a.IsLoopback()
	}
	if g.Private { // never link-local: clouds serve their metadata there
		return a.IsGlobalUnicast() && a.Zone() == "" || a.IsLoopback()
	}
	return to.Port() == httpsPort && isPublic(a)
}

// global is the IPv6 range that IANA has allocated. Other addresses may lead elsewhere, such as to an IPv4 address
// behind a translator.
var global = netip.MustParsePrefix("2000::/3")

// special are networks that are not on the Internet, or that embed an IPv4 address (IANA's registries of
// special-purpose addresses).
var special = func() (ps []netip.Prefix) {
	for p := range strings.FieldsSeq(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
		192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
		192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16
		3fff::/20`) {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}()

func isPublic(a netip.Addr) bool {
	if a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsValid() && a.Zone() == ""
}

// Loopback reports whether a host names this machine. A Guard must check again what a name resolves to.
func Loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}
