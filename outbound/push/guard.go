package push

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
)

// errRefused is the error of the guard. It is permanent: a name that resolves to this network is not a valid target.
var errRefused = errors.New("the address must not be called")

// control checks an address after its name was resolved and before anything is sent to it. So a name cannot resolve to
// one address for the check and to another for the call.
type control = func(network, address string, _ syscall.RawConn) error

// guard prevents users from reaching, through this process, hosts that only this process can reach (SEC-37).
type guard struct {
	private bool // loopback, private networks and every port
}

const httpsPort = 443

func (g guard) judge(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !g.admits(to) {
		return errRefused
	}
	return nil
}

func (g guard) admits(to netip.AddrPort) bool {
	a := to.Addr().Unmap()
	if g.private { // never link-local: clouds serve their metadata there
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

// loopbackOnly is the guard of plain http.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
		return errRefused
	}
	return nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}
