package push

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
)

// errRefused is the answer of the guard. Trying again does not help: a name that
// leads into this network today was not meant for anything else.
var errRefused = errors.New("the address is not one that may be called")

// control judges an address after its name was resolved and before anything is
// sent to it, so that no name can mean one address when it is checked and
// another when it is called.
type control = func(network, address string, _ syscall.RawConn) error

// guard keeps users from reaching, through this process, what only this process
// can reach (SEC-37).
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
	if g.private { // never link-local: there live the metadata of clouds
		return a.IsGlobalUnicast() && a.Zone() == "" || a.IsLoopback()
	}
	return to.Port() == httpsPort && isPublic(a)
}

// global is what IANA gave out of IPv6. Whatever else looks like an address may
// lead somewhere else, such as an IPv4 address behind a translator.
var global = netip.MustParsePrefix("2000::/3")

// special are networks that are no one's on the Internet, or that carry an IPv4
// address inside (IANA's registries of special-purpose addresses).
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
