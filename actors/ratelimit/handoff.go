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
func (l *Limiter) takeOverSoon(p int) { l.inBackground(func() { l.takeOver(p) }) }

// takeOver makes this node, the owner by the ring, the one that decides. It calls other members between two messages to
// the shard.
func (l *Limiter) takeOver(p int) {
	var begun *shard.Takeover
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		m := &shard.TakeOver{Place: l.placeOf(l.place.Load(), p)}
		l.stepLocked(p, m)
		begun = m.Begun
	})
	if begun == nil {
		return
	}
	found, ready := l.pullDeciders(begun.From, begun.Pull)
	if len(found) == 0 && begun.KnowsNothing {
		found = l.pullFromAny(p)
	}
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		pl := l.place.Load()
		m := &shard.TakenOver{Place: l.placeOf(pl, p), Takeover: begun, Found: found, Ready: ready, Alone: pl.alone}
		if l.stepLocked(p, m); m.Done {
			l.pulled.Add(int64(len(found)))
		}
	})
	l.sendState(p)
}

// pullDeciders stops every member that may have decided about a partition, and collects their states. Not ready:
// another member already owns it, and its message to this node will follow.
func (l *Limiter) pullDeciders(from string, q *pb.RatePull) (all []*shard.Transfer, ready bool) {
	if from != "" {
		if got, ok := l.pull(from, pullTimeout, q); ok && got[0].Refused {
			return nil, false
		} else if ok && got[0].Was == 0 {
			all = append(all, &shard.Transfer{States: got, By: from, Replica: true})
		}
	}
	former := slices.DeleteFunc(l.net.Former(Kind, strconv.Itoa(int(q.Part))),
		func(id string) bool { return id == from })
	return append(all, l.pullAll(former, &pb.RatePull{Part: q.Part, Number: q.Number})...), true
}

// pullAll collects the states of the given members that hand over.
func (l *Limiter) pullAll(ids []string, q *pb.RatePull) (all []*shard.Transfer) {
	for _, id := range ids {
		if got, ok := l.pull(id, pullTimeout, q); ok && !got[0].Refused {
			all = append(all, &shard.Transfer{States: got, By: id})
		}
	}
	return all
}

// pullFromAny looks for the state of a partition whose former owner stopped before it was asked. Its replica, whichever
// member that was, has the state.
func (l *Limiter) pullFromAny(p int) []*shard.Transfer {
	others := slices.DeleteFunc(slices.Clone(l.place.Load().members), func(id string) bool { return id == l.self })
	return l.pullAll(others, &pb.RatePull{Part: uint32(p), Back: true})
}

// pull makes a member stop deciding about a partition and hand over its state. Not ok: the member is gone or
// unreachable.
func (l *Limiter) pull(from string, within time.Duration, q *pb.RatePull) (states []*pb.RateState, ok bool) {
	end := l.table.Instant() + int64(within)
	q = proto.CloneOf(q)
	for l.ctx.Err() == nil && l.table.Instant() < end && !l.net.Lost(from) {
		got, err := l.net.Ask(l.ctx, time.Duration(end-l.table.Instant()), from, pullName, q)
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
func (l *Limiter) receivePull(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RatePull)
	if ok && len(q.Tell) > 0 {
		for _, p := range q.Tell {
			l.markUnsent(int(p))
		}
		l.wake()
	}
	if !ok || len(q.Tell) > 0 || int(q.Part) >= len(l.partitions) {
		answer(&pb.RateState{Refused: true})
		return
	}
	l.inBackground(func() { // handing over may wait, and this goroutine must keep reading
		if !q.Back && len(q.After) == 0 {
			l.stopHere(int(q.Part), from)
		}
		answer(l.handOver(from, q))
	})
}

// stopHere stops this node as the owner of a partition, and its replica, which may have decided without this node's
// knowledge. except is the caller, which is not stopped.
func (l *Limiter) stopHere(p int, except string) {
	m := &shard.Stop{}
	l.step(p, m)
	if m.From == "" || m.From == except {
		return
	}
	q := &pb.RatePull{Part: uint32(p), Number: m.Known, Back: true, Close: true}
	got, ok := l.pull(m.From, closeTimeout, q)
	then := &shard.Stopped{From: m.From}
	if ok && !got[0].Refused && got[0].Was == 0 {
		then.Found = &shard.Transfer{States: got, By: m.From, Replica: true}
	}
	l.step(p, then)
}

// handOver returns one chunk of a partition's state, for the member that decides from now on.
func (l *Limiter) handOver(to string, q *pb.RatePull) *pb.RateState {
	m := &shard.Pull{To: to, Pull: q}
	l.step(int(q.Part), m)
	return m.State
}
