package firewall

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"

	"castellan/domain/kit/sorting"
)

// networks finds the rules for an address. Single addresses are in a hash map, networks in a trie of one byte per
// level with compact nodes. The entry of the longest network includes those of the networks around it. So one walk of
// at most four steps (sixteen for IPv6) is enough, however many networks exist.
type networks struct {
	single map[netip.Addr]*hit
	v4, v6 *node
}

// node is one byte of addresses. A network that ends within the byte occupies every slot that it covers.
type node struct {
	hits     [4]uint64 // which slots have one
	below    [4]uint64
	hit      []*hit
	children []*node
}

func rank(set *[4]uint64, b byte) int {
	n := bits.OnesCount64(set[b>>6] & (1<<(b&63) - 1))
	for i := range b >> 6 {
		n += bits.OnesCount64(set[i])
	}
	return n
}

func has(set *[4]uint64, b byte) bool { return set[b>>6]&(1<<(b&63)) != 0 }

// find returns the entry of an address in normal form, nil if it has none.
func (n *networks) find(a netip.Addr) *hit {
	if n == nil {
		return nil
	}
	if h, ok := n.single[a]; ok {
		return h
	}
	if a.Is4() {
		if n.v4 == nil {
			return nil
		}
		b := a.As4()
		return n.v4.find(b[:])
	}
	if n.v6 == nil || !a.IsValid() {
		return nil
	}
	b := a.As16()
	return n.v6.find(b[:])
}

func (at *node) find(address []byte) (found *hit) {
	for _, b := range address {
		if has(&at.hits, b) {
			found = at.hit[rank(&at.hits, b)]
		}
		if !has(&at.below, b) {
			break
		}
		at = at.children[rank(&at.below, b)]
	}
	return found
}

// newNetworks builds the index from the entries of each network alone.
func newNetworks(said map[netip.Prefix]*hit) *networks {
	if len(said) == 0 {
		return nil
	}
	list := make([]netip.Prefix, 0, len(said))
	for p := range said {
		list = append(list, p)
	}
	// Wider networks first: each finds the entries of those around it.
	sorting.Func(list, func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(a.Bits(), b.Bits()), a.Addr().Compare(b.Addr()))
	})
	n := &networks{single: map[netip.Addr]*hit{}}
	for _, p := range list {
		h := said[p]
		if around := n.find(p.Addr()); around != nil {
			h = h.with(around)
		}
		switch {
		case p.IsSingleIP():
			n.single[p.Addr()] = h
		case p.Addr().Is4():
			if n.v4 == nil {
				n.v4 = new(node)
			}
			b := p.Addr().As4()
			n.v4.put(b[:], p.Bits(), h)
		default:
			if n.v6 == nil {
				n.v6 = new(node)
			}
			b := p.Addr().As16()
			n.v6.put(b[:], p.Bits(), h)
		}
	}
	return n
}

// put adds a network that is not wider than those before it.
func (at *node) put(address []byte, length int, h *hit) {
	for ; length > 8; length, address = length-8, address[1:] {
		b := address[0]
		i := rank(&at.below, b)
		if !has(&at.below, b) {
			at.below[b>>6] |= 1 << (b & 63)
			at.children = slices.Insert(at.children, i, new(node))
		}
		at = at.children[i]
	}
	first := int(address[0])
	for b := first; b < first+1<<(8-length); b++ {
		i := rank(&at.hits, byte(b))
		if has(&at.hits, byte(b)) {
			at.hit[i] = h
			continue
		}
		at.hits[b>>6] |= 1 << (b & 63)
		at.hit = slices.Insert(at.hit, i, h)
	}
}
