// Package client identifies callers by their network address alone. All limits per address apply per Prefix, so that a
// customer of a provider is one caller whichever address of its block it uses (decision D-GEN-14).
package client

import "net/netip"

// Prefix is the block that counts as one caller: an IPv4 address itself, or the /64 of an IPv6 address. IPv4 in IPv6
// counts as IPv4. The zero address yields "".
func Prefix(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return ""
	case a.Is4():
		return a.String() + "/32"
	}
	p, _ := a.Prefix(64) // 64 bits always fit an IPv6 address
	return p.String()
}
