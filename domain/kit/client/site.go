package client

import "net/netip"

// siteBits is the shortest block of IPv6 that providers hand out to one customer.
const siteBits = 56

// Site is the block that counts as one where it is counted over all accounts
// (D-GEN-14, D-PWD-05): an IPv4 address itself, or the /56 of an IPv6 address. The
// text is "" for the zero address.
func Site(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return Prefix(a)
	}
	p, _ := a.Prefix(siteBits)
	return p.String()
}

// Region is the block in which addresses can be had cheaply, so that together they
// count little: the /24 of an IPv4 prefix or the /48 of an IPv6 prefix, both in the
// spelling of Prefix. What is no prefix is a region of its own.
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
