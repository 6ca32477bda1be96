package ratelimit

import (
	"encoding/binary"
	"net/netip"
)

// Slots returns the capacity in instants or buckets.
func (w *Window) Slots() int { return len(w.ring) + len(w.coarse) }

// Colliding returns the n-th of the keys that have the same hash.
func Colliding(n uint64) Key {
	h := mix(14695981039346656037) // that of the label ""
	var a [16]byte
	binary.LittleEndian.PutUint64(a[:8], n)
	binary.LittleEndian.PutUint64(a[8:], mix(h^n))
	return Key{IP: netip.AddrFrom16(a)}
}
