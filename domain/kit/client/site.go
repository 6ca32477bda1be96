package client

import "net/netip"

// siteBits is the smallest IPv6 block that providers assign to one customer.
const siteBits = 56

// Site is the block that counts as one caller in limits over all accounts (D-GEN-14, D-PWD-05): an IPv4 address itself,
// or the /56 of an IPv6 address. The zero address yields "".
func Site(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return Prefix(a)
	}
	p, _ := a.Prefix(siteBits)
	return p.String()
}

// Region is the block in which addresses are cheap to obtain, so that limits count them together. It is the /24 of an
// IPv4 prefix or the /48 of an IPv6 prefix, both in the spelling of Prefix. Any other text is a region of its own.
func Region(prefix string) string {
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return prefix
	}
	bits := 48
	if p.Addr().Is4() {
		bits = 24
	}
	region, err := p.Addr().Prefix(min(bits, p.Bits()))
	if err != nil {
		return prefix
	}
	return region.String()
}
