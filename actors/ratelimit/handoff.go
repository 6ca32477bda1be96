package ratelimit

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

const (
	// pullTimeout bounds how long a former owner may take to hand over. A member that is silent for longer has lost its
	// membership lease.
	pullTimeout = 1250 * time.Millisecond
	// closeTimeout bounds how long that owner waits for its own replica in the meantime.
	closeTimeout = pullTimeout / 3
)

// takeOverSoon is takeOver for callers that must not wait.
func (mv *mover) takeOverSoon(p int) { mv.inBackground(func() { mv.takeOver(p) }) }

// takeOver makes this node, the owner by the ring, the one that decides. It calls other members between two messages to
// the shard.
func (mv *mover) takeOver(p int) {
	var begun *shard.Takeover
	mv.table.WithPartition(p, func(*ratelimit.Partition) {
		m := &shard.TakeOver{Place: mv.placeOf(mv.place.Load(), p, "")}
		mv.stepLocked(p, m)
		begun = m.Begun
	})
	if begun == nil {
		return
	}
	found, lost, ready := mv.pullDeciders(begun.From, begun.Pull)
	if len(found) == 0 && begun.KnowsNothing {
		found = mv.pullFromAny(p)
	}
	witnessed := mv.peers.witnessedOf(lost, p)
	mv.table.WithPartition(p, func(*ratelimit.Partition) {
		pl := mv.place.Load()
		m := &shard.TakenOver{Place: mv.placeOf(pl, p, ""), Takeover: begun, Found: found, Witnessed: witnessed,
			Ready: ready, Alone: pl.alone}
		if mv.stepLocked(p, m); m.Done {
			mv.pulled.Add(int64(len(found)))
		}
	})
	mv.replicator.sendState(p)
}

// pullDeciders stops every member that may have decided about a partition, and collects their states. lost are those
// that do not answer. Not ready: another member already owns it, and its message to this node will follow.
func (mv *mover) pullDeciders(from string, q *pb.RatePull) (all []*shard.Transfer, lost []string, ready bool) {
	if from != "" {
		switch got, ok := mv.pull(from, pullTimeout, q); {
		case !ok:
			lost = append(lost, from)
		case got[0].Refused:
			return nil, nil, false
		case got[0].Was == 0:
			all = append(all, &shard.Transfer{States: got, By: from, Replica: true})
		}
	}
	former := slices.DeleteFunc(mv.net.Former(Kind, strconv.Itoa(int(q.Part))),
		func(id string) bool { return id == from })
	found, silent := mv.pullAll(former, &pb.RatePull{Part: q.Part, Number: q.Number})
	return append(all, found...), append(lost, silent...), true
}

// pullAll collects the states of the given members that hand over, and names those that do not answer.
func (mv *mover) pullAll(ids []string, q *pb.RatePull) (all []*shard.Transfer, lost []string) {
	for _, id := range ids {
		if got, ok := mv.pull(id, pullTimeout, q); !ok {
			lost = append(lost, id)
		} else if !got[0].Refused {
			all = append(all, &shard.Transfer{States: got, By: id})
		}
	}
	return all, lost
}

// pullFromAny looks for the state of a partition whose former owner stopped before it was asked. Its replica, whichever
// member that was, has the state.
func (mv *mover) pullFromAny(p int) []*shard.Transfer {
	others := slices.DeleteFunc(slices.Clone(mv.place.Load().members), func(id string) bool { return id == mv.self })
	found, _ := mv.pullAll(others, &pb.RatePull{Part: uint32(p), Back: true})
	return found
}

// pull makes a member stop deciding about a partition and hand over its state. Not ok: the member is gone or
// unreachable.
func (mv *mover) pull(from string, within time.Duration, q *pb.RatePull) (states []*pb.RateState, ok bool) {
	end := mv.table.Instant() + int64(within)
	q = proto.CloneOf(q)
	for mv.ctx.Err() == nil && mv.table.Instant() < end && !mv.net.Lost(from) {
		got, err := mv.net.Ask(mv.ctx, time.Duration(end-mv.table.Instant()), from, pullName, q)
		s, is := got.(*pb.RateState)
		if err != nil || !is || !shard.StateFits(s) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		states = append(states, s)
		if !s.More || len(s.Keys) == 0 {
			return states, true
		}
		q = proto.CloneOf(q)
		q.After = s.Keys[len(s.Keys)-1]
	}
	return nil, false
}

// receivePull hands a partition over or, if a replica lacks states, sends them again.
func (mv *mover) receivePull(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RatePull)
	if ok && len(q.Tell) > 0 {
		for _, p := range q.Tell {
			mv.replicator.markUnsent(int(p))
		}
		mv.wake()
	}
	if !ok || len(q.Tell) > 0 || int(q.Part) >= len(mv.partitions) {
		answer(&pb.RateState{Refused: true})
		return
	}
	mv.inBackground(func() { // handing over may wait, and this goroutine must keep reading
		if !q.Back && len(q.After) == 0 {
			mv.stopHere(int(q.Part), from)
		}
		answer(mv.handOver(from, q))
	})
}

// stopHere stops this node as the owner of a partition, and its replica, which may have decided without this node's
// knowledge. except is the caller, which is not stopped.
func (mv *mover) stopHere(p int, except string) {
	m := &shard.Stop{}
	mv.step(p, m)
	if m.From == "" || m.From == except {
		return
	}
	q := &pb.RatePull{Part: uint32(p), Number: m.Known, Back: true, Close: true}
	got, ok := mv.pull(m.From, closeTimeout, q)
	then := &shard.Stopped{From: m.From}
	if !ok {
		then.Witnessed = mv.peers.witnessedOf([]string{m.From}, p)
	} else if !got[0].Refused && got[0].Was == 0 {
		then.Found = &shard.Transfer{States: got, By: m.From, Replica: true}
	}
	mv.step(p, then)
}

// handOver returns one chunk of a partition's state, for the member that decides from now on.
func (mv *mover) handOver(to string, q *pb.RatePull) *pb.RateState {
	m := &shard.Pull{To: to, Pull: q}
	mv.step(int(q.Part), m)
	return m.State
}
