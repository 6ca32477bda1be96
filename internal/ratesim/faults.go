package ratesim

import (
	"slices"
	"time"
)

// A fault hits one node. The next one follows when the cluster has settled, because the limiter promises its limits
// for one lost or frozen node at a time, while others stall for a moment.

// crowd stalls nodes for a short time now and then, as on a machine that is short of processors.
func (w *world) crowd() {
	if w.calm {
		return
	}
	all := w.living()
	if n := w.nodes[all[w.rng.IntN(len(all))]]; n.frozenUntil < w.now {
		w.freeze(n.id, w.between(10*time.Millisecond, 130*time.Millisecond))
	}
	w.after(-1, w.between(50*time.Millisecond, 400*time.Millisecond), w.crowd)
}

// fault runs some faults, one after the other.
func (w *world) fault(left int) {
	if left == 0 {
		w.after(-1, 5e9, func() { w.calm = true })
		w.after(-1, 10e9, func() { w.over = true })
		return
	}
	all := w.living()
	id := all[w.rng.IntN(len(all))]
	rest := without(all, id)
	var took int64
	switch kind := w.rng.IntN(10); {
	case kind == 0:
		took = w.join(all)
	case kind == 1 && len(all) > 2:
		took = w.leave(id, rest)
	case kind == 2 && len(all) > 2:
		w.say("kill", id)
		w.nodes[id].dead = true
		took = w.hear(rest, rest, w.between(0, 300*time.Millisecond), 40*time.Millisecond)
	case kind < 6 && len(all) > 2:
		took = w.freezeLong(id, all, rest)
	default:
		w.say("stall", id)
		took = w.between(20*time.Millisecond, 500*time.Millisecond)
		w.freeze(id, took)
	}
	w.after(-1, took+w.between(500*time.Millisecond, 1500*time.Millisecond), func() { w.fault(left - 1) })
}

// hear updates the views of nodes in any order, and returns when the last one is updated.
func (w *world) hear(view, ids []int, from int64, within time.Duration) int64 {
	ids = slices.Clone(ids)
	w.rng.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	for _, id := range ids {
		from += w.rng.Int64N(int64(within))
		w.after(id, from, func() { w.nodes[id].see(view) })
	}
	return from
}

func (w *world) join(all []int) int64 {
	n := w.start()
	w.say("join", n.id)
	view := append(slices.Clone(all), n.id)
	n.closed, n.lapsed = true, true // it decides nothing before it has met the others
	var took int64
	if w.rng.IntN(2) == 0 { // it sees one more member at a time, before the others do
		n.see([]int{n.id, all[0]})
		took = w.hear(view, all, w.hear(view, []int{n.id}, 0, 5*time.Millisecond), 30*time.Millisecond)
	} else {
		took = w.hear(view, view, 0, 30*time.Millisecond)
	}
	w.after(n.id, took, func() {
		n.closed, n.lapsed = false, false
		n.wake()
	})
	return took
}

func (w *world) leave(id int, rest []int) int64 {
	w.say("leave", id)
	n := w.nodes[id]
	n.closed = true
	took := w.hear(rest, append(slices.Clone(rest), id), 0, 30*time.Millisecond) +
		w.between(100*time.Millisecond, 200*time.Millisecond)
	w.after(-1, took, func() { n.dead = true })
	return took
}

// freeze stops a node for a time. When it goes on, it knows that it stalled.
func (w *world) freeze(id int, took int64) {
	n := w.nodes[id]
	n.frozenAt, n.frozenUntil = w.now, max(w.now+took, n.frozenUntil)
	w.after(id, took, func() {
		if took > leastStall {
			n.resumed = n.clock()
			n.settleAll()
		}
	})
}

// freezeLong stops a node until the others have given it up. When it goes on, its membership is not confirmed, and all
// learn of its return in any order.
func (w *world) freezeLong(id int, all, rest []int) int64 {
	w.say("freeze", id)
	took := w.between(1600*time.Millisecond, 2500*time.Millisecond)
	took = w.hear(rest, rest, took, 60*time.Millisecond) + w.between(100*time.Millisecond, 4*time.Second)
	n := w.nodes[id]
	n.lapsed = w.Off&Lease == 0
	w.freeze(id, took)
	end := w.hear(all, rest, took, 50*time.Millisecond)
	if lapse := took + w.rng.Int64N(end-took+50e6); w.Off&Lease == 0 {
		w.after(id, lapse, n.lapse)
	}
	return w.hear(all, all, end+50e6, 50*time.Millisecond)
}
