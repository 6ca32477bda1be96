package client

import "net/netip"

// Origin is the address of a request with the blocks of it that limits count. It is made once, because each block is a
// text. The zero Origin has no address.
type Origin struct {
	Addr                 netip.Addr
	Prefix, Site, Region string
}

// From returns the origin of a request from an address.
func From(a netip.Addr) Origin {
	o := Origin{Addr: a, Prefix: Prefix(a)}
	o.Site, o.Region = o.Prefix, Region(o.Prefix)
	if a.Unmap().Is6() {
		o.Site = Site(a)
	}
	return o
}

// PrefixOf is the Prefix of an address in text; "" for another text.
func PrefixOf(ip string) string {
	a, _ := netip.ParseAddr(ip)
	return Prefix(a)
}
