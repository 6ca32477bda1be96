package ratesim

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
)

const (
	pullTime  = int64(1250 * time.Millisecond)
	closeTime = pullTime / 3
	formerFor = int64(5 * time.Second)
	pullPause = int64(5 * time.Millisecond)
)

// rank returns the two best nodes of a view for a partition.
func rank(view []int, p int) (first, second int) {
	first, second = -1, -1
	var best, next uint64
	for _, id := range view {
		x := uint64(id+1)*0x9e3779b97f4a7c15 ^ uint64(p+1)*0xbf58476d1ce4e5b9
		x ^= x >> 31
		x *= 0x94d049bb133111eb
		x ^= x >> 29
		switch {
		case first < 0 || x > best:
			second, next, first, best = first, best, id, x
		case second < 0 || x > next:
			second, next = id, x
		}
	}
	return first, second
}

func without(view []int, id int) []int {
	return slices.DeleteFunc(slices.Clone(view), func(m int) bool { return m == id })
}

// remember keeps a view whose owners must be asked.
func (n *node) remember(view []int) {
	if len(view) > 0 && n.Off&Grace == 0 {
		n.past = append(n.past, past{slices.Clone(view), n.clock() + formerFor})
	}
}

// former returns the nodes that may own a partition by an earlier view.
func (n *node) former(p int) (all []int) {
	for _, x := range n.past {
		if o, _ := rank(x.view, p); o >= 0 && o != n.id && n.clock() < x.until && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// see sets the members that a node sees, as package cluster does.
func (n *node) see(view []int) {
	before := n.view
	n.note('v', int64(n.id), int64(len(view)))
	var added []int
	n.remember(before)
	if has := slices.Contains(before, n.id); len(before) == 1 && has || !has {
		n.remember(without(view, n.id))
	}
	for _, m := range view {
		if !slices.Contains(before, m) {
			added = append(added, m)
			if m != n.id && (n.seen[m] || len(before) > 1 && n.now-n.born < formerFor) {
				n.remember([]int{m}) // it may have been alone
			}
		}
		n.seen[m] = true
	}
	n.view = slices.Clone(view)
	n.moved(len(before) == 1 && len(view) > 1, false, added)
}

// lapse handles the end of a silence for which the node could not confirm its membership.
func (n *node) lapse() {
	n.remember(without(n.view, n.id))
	n.moved(false, true, nil)
	n.lapsed = false
}

func (n *node) moved(joined, lapsed bool, added []int) {
	for _, p := range n.parts {
		before := n.replica[p]
		n.owner[p], n.replica[p] = rank(n.view, p)
		n.step(p, &shard.Placed{Place: n.place(p), Joined: joined, Lapsed: lapsed, Same: before == n.replica[p],
			Decided: len(added) > 0 && slices.ContainsFunc(n.former(p),
				func(id int) bool { return slices.Contains(added, id) })})
	}
	n.wake()
}

// wake takes over what this node owns now, and sends new replicas their states.
func (n *node) wake() {
	n.after(n.id, 1000, func() {
		for _, p := range n.parts {
			if n.owner[p] == n.id && len(n.view) > 1 {
				n.takeOver(p, func() { n.step(p, &shard.Resend{Place: n.place(p)}) })
			}
		}
	})
}

// takeOver makes this node, the owner by the ring, the one that decides.
func (n *node) takeOver(p int, then func()) {
	m := &shard.TakeOver{Place: n.place(p)}
	if n.step(p, m); m.Begun == nil {
		then()
		return
	}
	var found []*shard.Transfer
	var gone []int // those that did not hand over
	end := func(ready bool) {
		n.witnessedOf(gone, p, func(all []*shard.Update) {
			n.step(p, &shard.TakenOver{Place: n.place(p), Takeover: m.Begun, Found: found, Witnessed: all, Ready: ready,
				Alone: len(n.view) == 1})
			n.note('o', int64(n.id), int64(p), int64(len(found)))
			n.step(p, &shard.Resend{Place: n.place(p)})
			then()
		})
	}
	all := func(ids []int, q *pb.RatePull, then func()) {
		var next func()
		next = func() {
			if len(ids) == 0 {
				then()
				return
			}
			id := ids[0]
			ids = ids[1:]
			n.pull(id, pullTime, q, func(got []*pb.RateState, ok bool) {
				switch {
				case !ok:
					gone = append(gone, id)
				case !got[0].Refused:
					found = append(found, &shard.Transfer{States: got, By: n.member(id)})
				}
				next()
			})
		}
		next()
	}
	from, known := n.byName[m.Begun.From]
	others := func() {
		ids := slices.DeleteFunc(n.former(p), func(id int) bool { return known && id == from })
		if n.Off&Release != 0 {
			ids = nil
		}
		all(ids, &pb.RatePull{Part: uint32(p), Number: m.Begun.Pull.Number}, func() {
			if len(found) > 0 || !m.Begun.KnowsNothing || n.Off&Release != 0 {
				end(true)
				return
			}
			all(without(n.view, n.id), &pb.RatePull{Part: uint32(p), Back: true}, func() { end(true) })
		})
	}
	if !known {
		others()
		return
	}
	n.pull(from, pullTime, m.Begun.Pull, func(got []*pb.RateState, ok bool) {
		switch {
		case !ok:
			gone = append(gone, from)
		case got[0].Refused:
			end(false)
			return
		case got[0].Was == 0:
			found = append(found, &shard.Transfer{States: got, By: n.member(from), Replica: true})
		}
		others()
	})
}

// pull makes a node stop deciding and hand over its state.
func (n *node) pull(from int, within int64, q *pb.RatePull, got func([]*pb.RateState, bool)) {
	until := n.clock() + within
	var states []*pb.RateState
	var again func()
	again = func() {
		left := until - n.clock()
		if left <= 0 || n.lost(from) {
			got(nil, false)
			return
		}
		asked := q
		n.ask(from, left, func(m *node, reply func(any)) { m.handOver(n.name, asked, reply) }, func(x any) {
			s, ok := x.(*pb.RateState)
			if !ok {
				n.timer(n.id, pullPause, again)
				return
			}
			states = append(states, s)
			if !s.More || len(s.Keys) == 0 {
				got(states, true)
				return
			}
			q = proto.CloneOf(q)
			q.After = s.Keys[len(s.Keys)-1]
			again()
		})
	}
	again()
}

// handOver stops this node as the owner of a partition, and its replica, and gives its state away.
func (n *node) handOver(to string, q *pb.RatePull, reply func(any)) {
	p := int(q.Part)
	give := func() {
		m := &shard.Pull{To: to, Pull: q}
		n.step(p, m)
		reply(m.State)
	}
	if q.Back || len(q.After) > 0 {
		give()
		return
	}
	m := &shard.Stop{}
	if n.step(p, m); m.From == "" || m.From == to {
		give()
		return
	}
	from := n.byName[m.From]
	n.pull(from, closeTime, &pb.RatePull{Part: q.Part, Number: m.Known, Back: true, Close: true},
		func(got []*pb.RateState, ok bool) {
			then := &shard.Stopped{From: m.From}
			if ok && !got[0].Refused && got[0].Was == 0 {
				then.Found = &shard.Transfer{States: got, By: m.From, Replica: true}
			}
			var gone []int
			if !ok {
				gone = []int{from}
			}
			n.witnessedOf(gone, p, func(all []*shard.Update) {
				then.Witnessed = all
				n.step(p, then)
				give()
			})
		})
}

// requestMissing requests the states that this node lacks as a replica.
func (n *node) requestMissing() {
	if !n.over {
		n.timer(n.id, missing, n.requestMissing)
	}
	n.requestStates()
}

func (n *node) requestStates() {
	if len(n.view) == 1 || n.lapsed {
		return
	}
	lacks := make([][]int, len(n.nodes))
	for _, p := range n.parts {
		if o := n.owner[p]; n.replica[p] == n.id && o >= 0 {
			m := &shard.Lacks{}
			if n.step(p, m); m.State {
				lacks[o] = append(lacks[o], p)
			}
		}
	}
	for o, parts := range lacks {
		if len(parts) > 0 {
			n.send(o, func(m *node) {
				for _, p := range parts {
					m.step(p, shard.Unsent{})
				}
				m.wake()
			})
		}
	}
}

// settle asks the other nodes, now and then, what this one has missed.
func (n *node) settle() {
	if !n.over {
		n.timer(n.id, settleInterval, n.settle)
	}
	n.settleAll()
}

func (n *node) settleAll() {
	for _, id := range n.view {
		if pr := n.peer(id); id != n.id && !pr.settling {
			pr.settling = true
			n.settleWith(id)
		}
	}
}

// stood is the answer to a node that stalled.
type stood struct {
	gone  int
	ahead []int
}

func (n *node) settleWith(id int) {
	pr, began := n.peer(id), n.clock()
	if !slices.Contains(n.view, id) || n.lost(id) {
		pr.settling = false
		return
	}
	n.ask(id, patience, func(m *node, reply func(any)) {
		at := m.peer(n.id)
		at.stoodAt = m.clock()
		back := stood{gone: at.gone}
		for _, p := range m.parts {
			if m.owner[p] == n.id && m.shards[p].HasActed() {
				back.ahead = append(back.ahead, p)
			}
		}
		reply(back)
	}, func(x any) {
		got, ok := x.(stood)
		if !ok {
			n.timer(n.id, probeInterval, func() { n.settleWith(id) })
			return
		}
		if pr.goneThere != got.gone {
			pr.goneThere = got.gone
			for _, p := range n.parts {
				if n.owner[p] == id && n.replica[p] == n.id {
					n.step(p, shard.Missed{})
				}
			}
			n.requestStates()
		}
		for _, p := range got.ahead {
			if n.replica[p] == id {
				n.step(p, shard.Replaced{By: n.member(id)})
				n.takeOver(p, func() {})
			}
		}
		pr.settledAt, pr.confirmedAt = began, max(pr.confirmedAt, began)
		if n.since(began) {
			n.settleWith(id)
			return
		}
		pr.settling = false
	})
}
