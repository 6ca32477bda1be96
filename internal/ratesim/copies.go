package ratesim

import (
	"math"
	"slices"

	"castellan/actors/ratelimit/shard"
)

// copied is the answer to updates.
type copied struct{ ahead, needs []int }

// sendUpdates sends the waiting updates to a replica, one batch at a time.
func (n *node) sendUpdates(to int) {
	pr := n.peer(to)
	if pr.busy || len(pr.queue) == 0 {
		return
	}
	pr.busy = true
	n.after(n.id, 1000, func() {
		batch := pr.queue
		pr.queue = nil
		began := n.clock()
		next := func() {
			pr.busy = false
			n.sendUpdates(to)
		}
		n.ask(to, patience, func(m *node, reply func(any)) { reply(m.receive(n.name, batch)) }, func(x any) {
			if got, ok := x.(copied); ok {
				n.confirmed(to, batch, began, got)
				next()
				return
			}
			n.updatesFailed(to, batch, began, next)
		})
	})
}

func (n *node) receive(from string, batch []*shard.Update) (back copied) {
	say := func(p int, what shard.Reply) {
		switch what {
		case shard.Superseding:
			back.ahead = append(back.ahead, p)
		case shard.StateNeeded:
			back.needs = append(back.needs, p)
		}
	}
	for _, x := range batch {
		if x.State != nil {
			m := &shard.State{From: from, State: x.State}
			n.step(x.Part, m)
			say(x.Part, m.Reply)
			continue
		}
		own := *x
		own.Waits = nil
		if x.Witness {
			n.keep(from, &own)
			continue
		}
		m := &shard.Copy{Update: &own}
		n.step(x.Part, m)
		say(x.Part, m.Reply)
	}
	return back
}

// confirmed acts on the answer to updates.
func (n *node) confirmed(to int, batch []*shard.Update, began int64, got copied) {
	pr := n.peer(to)
	pr.confirmedAt = max(pr.confirmedAt, began)
	if pr.silentReplica {
		pr.silentReplica = false
		for _, p := range n.parts {
			if n.owner[p] == n.id && n.replica[p] == to {
				n.step(p, shard.Unsent{})
			}
		}
		n.wake()
	}
	for _, p := range got.ahead {
		n.step(p, &shard.Superseded{By: n.member(to), Updates: batch})
		n.takeOver(p, func() {})
	}
	lacks := func(x *shard.Update) bool {
		return slices.Contains(got.ahead, x.Part) || slices.Contains(got.needs, x.Part)
	}
	for _, x := range batch {
		if d, is := x.Waits.(*waits); is {
			d.failed = d.failed || x.State != nil && lacks(x) || x.Witness && n.lapsed || !n.shards[x.Part].StillCounts(x)
			d.finish()
		} else if x.State != nil && !x.State.More && !lacks(x) {
			n.step(x.Part, shard.Copied{Place: shard.Place{ReplicaSilent: pr.silentReplica}})
		}
	}
	for _, p := range got.needs {
		n.step(p, shard.Unsent{})
		n.step(p, &shard.Resend{Place: n.place(p)})
	}
}

func (n *node) updatesFailed(to int, batch []*shard.Update, began int64, next func()) {
	pr := n.peer(to)
	end := func(holds bool) {
		for _, x := range batch {
			n.step(x.Part, shard.Unsent{})
			if d, is := x.Waits.(*waits); is {
				x.Waits = nil
				if !holds || n.lapsed || !n.shards[x.Part].StillCounts(x) {
					d.failed = true
				} else if w := n.witness(x.Part); w >= 0 && x.State == nil {
					y := *x
					y.Witness, y.Waits = true, d
					n.peer(w).queue = append(n.peer(w).queue, &y)
					n.sendUpdates(w)
					continue
				}
				d.finish()
			}
		}
		if !holds {
			n.wake()
		}
		next()
	}
	batch = n.failWitness(batch)
	if pr.silentReplica || len(batch) == 0 {
		end(true)
		return
	}
	n.mayGoOnWithout(to, began, func(may bool) {
		if may = may && pr.stoodAt <= began; may {
			pr.gone++
			pr.silentReplica = true
			for _, x := range pr.queue {
				if !x.Witness {
					batch = append(batch, x)
				}
			}
			for _, x := range batch {
				if x.State == nil {
					n.step(x.Part, shard.Unreplicated{Update: x})
				}
			}
		}
		end(may)
	})
}

// mayGoOnWithout calls then with whether the owner may go on without a replica.
func (n *node) mayGoOnWithout(to int, began int64, then func(bool)) {
	if n.Off&Question != 0 {
		then(true)
		return
	}
	if n.lost(to) {
		n.takeOverLost(to, then)
		return
	}
	n.recordSilence(to, began)
	pr := n.peer(to)
	left, others, replaced := 1, false, int64(math.MinInt64)
	last := func() {
		if left--; left > 0 {
			return
		}
		n.ping(to, func(alive bool) {
			then(!alive && others && replaced+actTime < pr.settledAt && !n.since(pr.confirmedAt))
		})
	}
	for _, id := range n.view {
		if id == n.id || id == to {
			continue
		}
		left++
		n.ask(id, patience, func(m *node, reply func(any)) {
			ago := int64(math.MinInt64)
			if at := m.peer(n.id).replacedAt; at != 0 {
				ago = m.clock() - at
			}
			reply(ago)
		}, func(x any) {
			if ago, ok := x.(int64); ok {
				if others = true; ago != math.MinInt64 {
					replaced = max(replaced, n.clock()-ago)
				}
			}
			last()
		})
	}
	last()
}

func (n *node) ping(to int, got func(alive bool)) {
	n.ask(to, patience, func(_ *node, reply func(any)) { reply(true) }, func(x any) {
		if x != nil {
			n.peer(to).silentSince = 0
		}
		got(x != nil)
	})
}

// recordSilence probes a node until it answers. Until then no request waits for it.
func (n *node) recordSilence(id int, since int64) {
	pr := n.peer(id)
	if pr.silentSince == 0 {
		pr.silentSince = max(since, 1)
	}
	if pr.probing {
		return
	}
	pr.probing = true
	var probe func()
	probe = func() {
		n.ping(id, func(alive bool) {
			switch {
			case alive:
				pr.probing = false
			case !slices.Contains(n.view, id):
				pr.probing, pr.silentSince = false, 0
			default:
				n.timer(n.id, probeInterval, probe)
			}
		})
	}
	probe()
}
