package ratelimit

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
)

// This file is the replica's side of replication. A replica counts the admissions of the owner until it decides itself,
// and reports that to the owner.

// reply is a replica's answer to an update.
type reply int

const (
	accepted    reply = iota
	superseding       // it has decided itself, or has another owner
	stateNeeded       // it lacks the earlier updates
)

// receiveUpdates receives the updates of an owner.
func (l *Limiter) receiveUpdates(from string, question proto.Message, answer func(proto.Message)) {
	l.recordQueryFrom(from)
	q, ok := question.(*pb.RateCopy)
	n := 0
	if ok {
		n, ok = len(q.Parts), updateFits(q)
	}
	back := &pb.RateCopied{}
	switch {
	case !ok:
	case q.Without != "":
		back.Replaced = l.replacedAgo(from)
	case q.Stood:
		back.Gone, back.Ahead = l.member(from).recordCatchUp(l.table.Instant()), l.decidedFor(from)
	}
	if !ok || q.Without != "" || q.Stood {
		answer(back)
		return
	}
	say := func(p uint32, what reply) {
		switch what {
		case superseding:
			back.Ahead = append(back.Ahead, p)
		case stateNeeded:
			back.Needs = append(back.Needs, p)
		}
	}
	states := q.States
	for i := range n + 1 {
		for len(states) > 0 && (int(states[0].Behind) <= i || i == n) {
			say(states[0].Part, l.applyState(from, states[0]))
			states = states[1:]
		}
		if i == n {
			break
		}
		key, valid := parseKey(q.Keys[i])
		if !valid || int(q.Parts[i]) != key.Partition() || q.Limits[i] < 1 || q.Periods[i] < 1 {
			continue
		}
		x := &update{part: int(q.Parts[i]), number: q.Numbers[i], takenBack: q.Taken[i], count: 1,
			demand: ratelimit.Demand{Key: key, Limit: q.Limits[i], Period: time.Duration(q.Periods[i])}}
		if len(q.Ids) > 0 {
			x.id = q.Ids[i]
		}
		if len(q.Counts) > 0 {
			x.count, x.ahead = min(q.Counts[i], ratelimit.MaxExact), min(max(q.Aheads[i], 0), maxLead*1000)
		}
		_, x.again = slices.BinarySearch(q.Again, uint32(i))
		_, x.demand.Shared = slices.BinarySearch(q.Shared, uint32(i))
		say(q.Parts[i], l.applyUpdate(x, false))
	}
	answer(back)
}

// maxRemembered is how many single admissions a partition remembers that another node or a state may lack.
const maxRemembered = 1 << 12

// applyUpdate counts an admission of the owner. The node receives it by an update or, asRequester, by the answer to its
// own request.
func (l *Limiter) applyUpdate(x *update, asRequester bool) (what reply) {
	l.table.WithPartition(x.part, func(windows *ratelimit.Partition) {
		part := &l.partitions[x.part]
		switch {
		case part.refusesOwner() || termOf(x.number) < termOf(part.number):
			what = superseding
			return
		case x.number <= part.stateNumber:
			return // it was part of the state
		case termOf(x.number) > termOf(part.number):
			part.beginTerm()
			what = stateNeeded
		}
		part.number = max(part.number, x.number)
		if asRequester {
			part.hear(x)
		}
		switch w := windows.Get(x.demand.Key); {
		case !x.takenBack:
			l.addOnce(windows, part, x)
		case x.id != 0:
			l.forgetNamed(windows, part, x.demand.Key, x.id, x.count)
		case w != nil:
			for range x.count {
				w.ForgetNewest()
			}
		}
	})
	return what
}

// replacedAgo returns how long ago, in microseconds, this node last had an owner's replica decide; 0: never.
func (l *Limiter) replacedAgo(owner string) uint64 {
	if at := l.member(owner).replacedAt.Load(); at != 0 {
		return uint64(max(1, (l.table.Instant()-at)/1000))
	}
	return 0
}

// decidedFor returns the partitions of an owner in which this node has decided.
func (l *Limiter) decidedFor(owner string) (all []uint32) {
	pl := l.place.Load()
	for p := range l.partitions {
		if pl.owner[p] == owner {
			l.withPartition(p, func(part *partition) {
				if part.phase == acting || part.phase == acted {
					all = append(all, uint32(p))
				}
			})
		}
	}
	return all
}

// applyOwn is applyUpdate for an admission of this node's own request, if the owner considers this node its replica.
// False: the admission is void.
func (l *Limiter) applyOwn(d *ratelimit.Demand, id, number uint64, again bool) bool {
	x := &update{part: d.Key.Partition(), number: number, id: id, again: again, demand: *d, count: 1}
	return number == 0 || l.applyUpdate(x, true) != superseding
}

// applyState adopts the state of a partition, or a chunk of it.
func (l *Limiter) applyState(from string, s *pb.RateState) (what reply) {
	if int(s.Part) >= len(l.partitions) {
		return accepted
	}
	l.table.WithPartition(int(s.Part), func(windows *ratelimit.Partition) {
		part := &l.partitions[s.Part]
		switch {
		case part.refusesOwner() || termOf(s.Number) < termOf(part.number):
			what = superseding
			return
		case s.Was != 0 && part.number != s.Was:
			part.incomplete()
			part.awaitState()
			what = stateNeeded
			return
		case s.Was != 0: // this node has all of it
			part.endState(from, s.Number)
			part.replicated()
			return
		case s.Next && part.skipChunks:
			return
		case !s.Next:
			part.skipChunks = part.awaited != nil && part.awaited.since > s.Number ||
				part.awaited == nil && part.number > s.Number
			if part.skipChunks {
				part.awaitState()
				what = stateNeeded
				return
			}
			part.forgetAll(windows)
			part.beginState()
		}
		l.add(windows, part, s)
		if !s.More {
			l.addMissing(windows, part, part.heard(), s.Number)
			part.endState(from, s.Number)
		}
	})
	return what
}

// addMissing counts the admissions that are missing from a state which goes up to a number.
func (l *Limiter) addMissing(windows *ratelimit.Partition, part *partition, all []*update, above uint64) {
	for _, x := range all {
		if x.number > above && !x.takenBack {
			l.addOnce(windows, part, x)
		}
	}
}
