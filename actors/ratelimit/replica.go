package ratelimit

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// This file is the replica's side of replication. A replica counts the admissions of the owner until it decides itself,
// and reports that to the owner.

// receiveUpdates receives the updates of an owner.
func (f *follower) receiveUpdates(from string, question proto.Message, answer func(proto.Message)) {
	f.peers.recordQueryFrom(from)
	q, ok := question.(*pb.RateCopy)
	n := 0
	if ok {
		n, ok = len(q.Parts), updateFits(q)
	}
	back := &pb.RateCopied{}
	switch {
	case !ok:
	case q.Without != "":
		back.Replaced = f.replacedAgo(from)
		if len(q.Of) > 0 {
			back.Witnessed = encodeUpdates(f.peers.member(q.Without).recordInquiry(q.Of, f.table.Instant()))
		}
	case q.Stood:
		back.Gone, back.Ahead = f.peers.member(from).recordCatchUp(f.table.Instant()), f.decidedFor(from)
	}
	if !ok || q.Without != "" || q.Stood {
		answer(back)
		return
	}
	f.peers.keep(from, q.Witness)
	say := func(p uint32, what shard.Reply) {
		switch what {
		case shard.Superseding:
			back.Ahead = append(back.Ahead, p)
		case shard.StateNeeded:
			back.Needs = append(back.Needs, p)
		}
	}
	var copied shard.Copy
	states := q.States
	for i := range n + 1 {
		for len(states) > 0 && (int(states[0].Behind) <= i || i == n) {
			say(states[0].Part, f.applyState(from, states[0]))
			states = states[1:]
		}
		if i == n {
			break
		}
		if x := decodeUpdate(q, i, 0); x != nil {
			copied = shard.Copy{Update: x}
			say(q.Parts[i], f.applyUpdate(&copied))
		}
	}
	answer(back)
}

// decodeUpdate returns update i of a message, whose instant lies back by at most a time in nanoseconds; nil: it is
// invalid.
func decodeUpdate(q *pb.RateCopy, i int, back int64) *shard.Update {
	key, valid := shard.ParseKey(q.Keys[i])
	if !valid || int(q.Parts[i]) != key.Partition() || q.Limits[i] < 1 || q.Periods[i] < 1 {
		return nil
	}
	x := &shard.Update{Part: int(q.Parts[i]), Number: q.Numbers[i], TakenBack: q.Taken[i], Count: 1,
		Demand: ratelimit.Demand{Key: key, Limit: q.Limits[i], Period: time.Duration(q.Periods[i])}}
	if len(q.Ids) > 0 {
		x.ID = q.Ids[i]
	}
	if len(q.Counts) > 0 {
		x.Count, x.Ahead = min(q.Counts[i], ratelimit.MaxExact), min(max(q.Aheads[i], -back), shard.MaxLead*1000)
	}
	_, x.Again = slices.BinarySearch(q.Again, uint32(i))
	_, x.Demand.Shared = slices.BinarySearch(q.Shared, uint32(i))
	return x
}

// applyUpdate counts an admission of the owner.
func (f *follower) applyUpdate(m *shard.Copy) shard.Reply {
	f.step(m.Part, m)
	return m.Reply
}

// replacedAgo returns how long ago, in microseconds, this node last had an owner's replica decide; 0: never.
func (f *follower) replacedAgo(owner string) uint64 {
	if at := f.peers.member(owner).replacedAt.Load(); at != 0 {
		return uint64(max(1, (f.table.Instant()-at)/1000))
	}
	return 0
}

// decidedFor returns the partitions of an owner in which this node has decided.
func (f *follower) decidedFor(owner string) (all []uint32) {
	pl := f.place.Load()
	for p := range f.partitions {
		if pl.owner[p] == owner {
			f.withShard(p, func(s *shard.Shard) {
				if s.HasActed() {
					all = append(all, uint32(p))
				}
			})
		}
	}
	return all
}

// applyOwn is applyUpdate for an admission of this node's own request, if the owner considers this node its replica.
// False: the admission may be void.
func (f *follower) applyOwn(d *ratelimit.Demand, id, number uint64, again bool, sent int64) bool {
	x := &struct {
		shard.Update
		shard.Copy
	}{Update: shard.Update{Part: d.Key.Partition(), Number: number, ID: id, Again: again, Demand: *d, Count: 1}}
	x.Copy.Update, x.AsRequester, x.Since = &x.Update, true, sent
	return f.applyUpdate(&x.Copy) != shard.Superseding
}

// applyState adopts the state of a partition, or a chunk of it.
func (f *follower) applyState(from string, s *pb.RateState) shard.Reply {
	if int(s.Part) >= len(f.partitions) {
		return shard.Accepted
	}
	m := &shard.State{From: from, State: s}
	f.step(int(s.Part), m)
	return m.Reply
}
