package cluster

import (
	"cmp"
	"net/netip"
	"slices"
)

// Member is a process of the cluster. A restarted process is another member.
type Member struct {
	ID      string // unique for every start of a process
	Address string // where other members reach its actors
	Version string // of the program
	Leaving bool   // reachable, but owns nothing any more
	// Epoch counts how often it has dropped its activations without leaving.
	Epoch uint64

	gossipsAt netip.Prefix
}

// ring assigns each identity to a member. It is immutable. Every member scores every identity and the highest score
// owns it (rendezvous hashing). Shares are even for any addresses, and a member that joins or leaves moves only its own
// identities.
type ring struct{ seats []seat }

type seat struct {
	Member
	hash uint64
}

// newRing gives each member a seat. Of two members on one address the earlier one is dead, detected or not: the later
// one gets the seat.
func newRing(ms []Member) *ring {
	r := &ring{}
	for _, m := range ms {
		at, found := slices.BinarySearchFunc(r.seats, m.Address,
			func(s seat, a string) int { return cmp.Compare(s.Address, a) })
		switch {
		case !found:
			r.seats = slices.Insert(r.seats, at, seat{m, mix(hash(fnvStart, m.Address))})
		case r.seats[at].ID < m.ID:
			r.seats[at].Member = m
		}
	}
	return r
}

// owner returns the member that owns key; nil if there is none.
func (r *ring) owner(key identity) *Member {
	h := hash(hash(fnvStart, key.kind)*fnvPrime, key.id)
	var best uint64
	var at *Member
	for i := range r.seats {
		if score := mix(h ^ r.seats[i].hash); at == nil || score > best {
			best, at = score, &r.seats[i].Member
		}
	}
	return at
}

// without returns the ring without one member.
func (r *ring) without(id string) *ring {
	return &ring{slices.DeleteFunc(slices.Clone(r.seats), func(s seat) bool { return s.ID == id })}
}

func (r *ring) has(id string) bool {
	return slices.ContainsFunc(r.seats, func(s seat) bool { return s.ID == id })
}

// same reports whether both rings assign everything to the same activations.
func (r *ring) same(o *ring) bool {
	return slices.EqualFunc(r.seats, o.seats, func(a, b seat) bool { return a.ID == b.ID && a.Epoch == b.Epoch })
}

// moved reports whether the activation of key is another one under next.
func (r *ring) moved(next *ring, key identity) bool {
	a, b := r.owner(key), next.owner(key)
	return a == nil || b == nil || a.ID != b.ID || a.Epoch != b.Epoch
}

const (
	fnvStart = 14695981039346656037
	fnvPrime = 1099511628211
)

// hash is FNV-1a, continued from h.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// mix lets every input bit affect every output bit: FNV alone hardly separates addresses that differ in their last
// characters.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}
