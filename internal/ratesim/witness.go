package ratesim

import (
	"slices"

	"castellan/actors/ratelimit/shard"
)

// witness returns a third node for the admissions in a partition that no replica confirms; -1: none.
func (n *node) witness(p int) int {
	third := -1
	for _, id := range n.view {
		switch {
		case n.Off&Witness != 0 || id == n.id || id == n.owner[p] || id == n.replica[p] || n.lost(id):
		case n.peer(id).silentSince == 0:
			return id
		default:
			third = id
		}
	}
	return third
}

// keep remembers an admission as its witness.
func (n *node) keep(from string, x *shard.Update) {
	w := &n.peer(n.byName[from]).witnessed
	if x.TakenBack {
		w.Forget([]uint64{x.ID}, x.Count)
		return
	}
	w.Note(x, n.clock())
	if o := n.owner[x.Part]; o >= 0 && o != n.id && n.member(o) != from {
		n.peer(o).replacedAt = n.clock()
	}
}

// keepOwn is keep for an admission of this node's request, which it sent at an instant. False: it is void.
func (n *node) keepOwn(from int, r *request, number uint64, sent int64) bool {
	w, k := &n.peer(from).witnessed, &n.keys[r.key]
	if w.Void(sent) {
		return false
	}
	w.Note(&shard.Update{Part: k.part, Number: number, ID: r.id(), Demand: n.demand(k), Count: 1}, n.clock())
	return true
}

// failWitness fails the decisions whose witness did not confirm them, and returns the other updates.
func (n *node) failWitness(batch []*shard.Update) []*shard.Update {
	return slices.DeleteFunc(slices.Clone(batch), func(x *shard.Update) bool {
		if d, is := x.Waits.(*waits); is && x.Witness {
			d.failed = true
			d.finish()
		}
		return x.Witness
	})
}

// witnessedOf collects what the other nodes have witnessed of lost ones in a partition.
func (n *node) witnessedOf(lost []int, p int, then func([]*shard.Update)) {
	var all []*shard.Update
	left := 1
	last := func(_ bool) {
		if left--; left == 0 {
			then(all)
		}
	}
	for _, id := range lost {
		left++
		n.inquire(id, []uint32{uint32(p)}, &all, last)
	}
	last(true)
}

// inquire asks every other node what it has witnessed of a lost one; not ok: one of them did not answer.
func (n *node) inquire(lost int, parts []uint32, all *[]*shard.Update, then func(ok bool)) {
	if n.Off&Witness != 0 {
		then(true)
		return
	}
	*all = append(*all, n.peer(lost).witnessed.Asked(parts, n.clock())...)
	left, ok, until := 1, true, n.clock()+pullTime
	last := func() {
		if left--; left == 0 {
			then(ok)
		}
	}
	for _, id := range n.view {
		if id == n.id || id == lost {
			continue
		}
		left++
		var again func()
		again = func() {
			within := until - n.clock()
			if gone := n.lost(id); gone || within <= 0 {
				ok = ok && gone
				last()
				return
			}
			n.ask(id, within, func(m *node, reply func(any)) {
				reply(m.peer(lost).witnessed.Asked(parts, m.clock()))
			}, func(x any) {
				some, answered := x.([]*shard.Update)
				if !answered {
					n.timer(n.id, pullPause, again)
					return
				}
				*all = append(*all, some...)
				last()
			})
		}
		again()
	}
	last()
}

// takeOverLost takes over what others have witnessed of a lost replica.
func (n *node) takeOverLost(id int, then func(ok bool)) {
	var parts []uint32
	for _, p := range n.parts {
		if n.owner[p] == n.id && n.replica[p] == id {
			parts = append(parts, uint32(p))
		}
	}
	slices.Sort(parts)
	var all []*shard.Update
	n.inquire(id, parts, &all, func(ok bool) {
		for _, p := range parts {
			m := &shard.Lost{Replica: n.member(id), Witnessed: all}
			if n.step(int(p), m); m.Stopped {
				n.takeOver(int(p), func() {})
			}
		}
		then(ok)
	})
}
