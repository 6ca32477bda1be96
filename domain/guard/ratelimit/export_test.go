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

// PartitionGate is a Gate that knows the partition of each demand.
type PartitionGate interface {
	MayDecide(partition int) bool
	Counted(i, partition int, instant, count int64)
}

type gateOf struct {
	PartitionGate
	at []int
}

func (g gateOf) MayDecide(i int) bool { return g.PartitionGate.MayDecide(g.at[i]) }
func (g gateOf) Counted(i int, instant, count int64) {
	g.PartitionGate.Counted(i, g.at[i], instant, count)
}

// Decide is Allow through a gate.
func (t *Table) Decide(demands []Demand, standings []Standing, gate PartitionGate) (admitted, open bool) {
	var at []int
	var hashes []uint64
	var parts []*Partition
	for _, d := range demands {
		at, hashes = append(at, d.Key.Partition()), append(hashes, d.Key.Hash())
		parts = append(parts, t.At(d.Key.Partition()))
	}
	t.Lock(at)
	defer t.Unlock(at)
	return Decide(parts, hashes, demands, standings, t.Instant(), gateOf{gate, at})
}

// Reserve is Partition.Reserve for the partition of a demand.
func (t *Table) Reserve(d *Demand, most, share, ahead int64, stand *Standing, g PartitionGate) (n int64, open bool) {
	at := []int{d.Key.Partition()}
	t.WithPartition(at[0], func(p *Partition) {
		n, open = p.Reserve(d, most, share, ahead, stand, t.Instant(), gateOf{g, at})
	})
	return n, open
}
