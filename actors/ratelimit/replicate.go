package ratelimit

import (
	"math"
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
)

// This file is the owner's side of replication; replica.go is the other side.

// update is a message to a replica: an admission, or the state of a partition.
type update struct {
	part      int
	number    uint64
	id        uint64 // the admission's name; 0: none
	again     bool   // it may have been sent, or requested, before
	demand    ratelimit.Demand
	takenBack bool // the admission was taken back
	count     int64
	ahead     int64         // nanoseconds from now to its instant
	decision  *decision     // waits for the replica; nil: its client already has the answer
	state     *pb.RateState // instead of a demand
}

func (x *update) term() uint64 {
	if x.state != nil {
		return termOf(x.state.Number)
	}
	return termOf(x.number)
}

// replicate sends an update to a replica. The caller holds the partition's lock, so that updates of a partition arrive
// in order.
func (l *Limiter) replicate(to string, x *update) { l.member(to).updates.put(x) }

// maxStateBatch bounds the states in one message, in keys and admissions.
const maxStateBatch = 1 << 17

// sendUpdates sends one batch to a replica.
func (l *Limiter) sendUpdates(m *member, batch []*update) {
	q, text := &pb.RateCopy{}, []byte(nil)
	begin, weight := 0, 0
	for i, x := range batch {
		if x.state != nil {
			if weight += len(x.state.Keys) + len(x.state.Ages); weight > maxStateBatch && i > begin {
				l.sendUpdate(m, q, batch[begin:i])
				q, begin, weight = &pb.RateCopy{}, i, 0
			}
			x.state.Behind = uint32(len(q.Parts))
			q.States = append(q.States, x.state)
			continue
		}
		if x.again {
			q.Again = append(q.Again, uint32(len(q.Parts)))
		}
		if x.demand.Shared {
			q.Shared = append(q.Shared, uint32(len(q.Parts)))
		}
		q.Parts = append(q.Parts, uint32(x.part))
		q.Numbers = append(q.Numbers, x.number)
		start := len(text)
		text = appendKey(text, x.demand.Key)
		q.Keys = append(q.Keys, text[start:len(text):len(text)])
		q.Limits = append(q.Limits, x.demand.Limit)
		q.Periods = append(q.Periods, int64(x.demand.Period))
		q.Taken = append(q.Taken, x.takenBack)
		q.Counts = append(q.Counts, x.count)
		q.Aheads = append(q.Aheads, x.ahead)
		q.Ids = append(q.Ids, x.id)
	}
	l.sendUpdate(m, q, batch[begin:])
}

// sendUpdate sends one message and acts on its answer.
func (l *Limiter) sendUpdate(m *member, q *pb.RateCopy, updates []*update) {
	l.copies.Add(1)
	l.copied.Add(int64(len(q.Parts)))
	began := l.table.Instant()
	got, err := l.net.Ask(l.ctx, m.copying.patience(), m.id, updateName, q)
	answer, ok := got.(*pb.RateCopied)
	if ok = ok && err == nil; !ok {
		l.updatesFailed(m, updates, began)
		return
	}
	now := l.table.Instant()
	m.copying.observe(time.Duration(now-began), now)
	storeMax(&m.confirmedAt, began)
	if m.replicaUnreachable.Swap(false) {
		l.resendStates(m.id)
	}
	for _, p := range answer.Ahead {
		l.superseded(int(p), m.id, updates)
	}
	for _, x := range updates {
		switch {
		case x.decision != nil:
			if x.state != nil && (slices.Contains(answer.Ahead, uint32(x.part)) ||
				slices.Contains(answer.Needs, uint32(x.part))) {
				x.decision.pending.failed.Store(true)
			}
			x.decision.finish()
		case x.state != nil && !x.state.More && !slices.Contains(answer.Ahead, uint32(x.part)) &&
			!slices.Contains(answer.Needs, uint32(x.part)):
			l.table.WithPartition(x.part, func(*ratelimit.Partition) {
				if !m.replicaUnreachable.Load() {
					l.partitions[x.part].replicated()
				}
			})
		}
	}
	for _, p := range answer.Needs {
		l.markUnsent(int(p))
		l.sendState(int(p))
	}
}

// updatesFailed handles updates that a replica did not confirm, and those that wait behind them. If the replica is
// gone, the owner goes on without one until it answers again. If this node was frozen or cut off, the replica may have
// decided in the meantime: then the waiting decisions fail.
func (l *Limiter) updatesFailed(m *member, updates []*update, began int64) {
	holds := m.replicaUnreachable.Load()
	if !holds {
		if holds = l.mayGoOnWithout(m, began) && m.goOn(began); holds {
			updates = slices.Concat(updates, m.updates.waiting()) // decisions behind these wait no longer
			l.noteUnreplicated(updates)
		}
	}
	for _, x := range updates {
		l.markUnsent(x.part) // the replica may have received a part of it
		if d := x.decision; d != nil {
			x.decision = nil
			if !holds || !l.net.Belongs() || !l.stillCounts(x) {
				d.pending.failed.Store(true)
			}
			d.finish()
		}
	}
	if !holds {
		l.wake()
	}
}

// stillCounts reports whether the admission of an update still counts here. The partition may have been taken over from
// the replica since.
func (l *Limiter) stillCounts(x *update) (counts bool) {
	l.withPartition(x.part, func(part *partition) { counts = part.phase == owning && x.term() == termOf(part.number) })
	return counts
}

// withPartition is Table.WithPartition for callers that need no windows.
func (l *Limiter) withPartition(p int, do func(part *partition)) {
	l.table.WithPartition(p, func(*ratelimit.Partition) { do(&l.partitions[p]) })
}

// markUnsent makes the next sendState send the whole state of a partition.
func (l *Limiter) markUnsent(p int) {
	if p >= 0 && p < len(l.partitions) {
		l.withPartition(p, func(part *partition) { part.stateSent = false })
	}
}

// noteUnreplicated records confirmed admissions that only this node has.
func (l *Limiter) noteUnreplicated(updates []*update) {
	for _, x := range updates {
		if x.state == nil {
			l.withPartition(x.part, func(part *partition) { part.noteUnreplicated(x) })
		}
	}
}

// actTime is longer than a running replica takes to decide about a query.
const actTime = 100 * time.Millisecond

// mayGoOnWithout reports whether an owner may go on without a replica that has not answered since an instant. It may if
// the replica is gone. It also may if another member answers, the replica still does not, and the replica cannot have
// decided. The replica can have decided in two cases. Either this node stalled after the replica's last confirmation,
// or another member had the replica decide and this node has not settled with it since.
func (l *Limiter) mayGoOnWithout(m *member, began int64) bool {
	if l.net.Lost(m.id) {
		return true
	}
	l.recordSilence(m, began)
	pl := l.place.Load()
	asked, answers := 0, make(chan *pb.RateCopied, len(pl.members)+1)
	ask := func(id string, q *pb.RateCopy) {
		asked++
		if !l.inBackground(func() {
			got, _ := l.net.Ask(l.ctx, m.copying.patience(), id, updateName, q)
			answer, _ := got.(*pb.RateCopied)
			answers <- answer
		}) {
			answers <- nil
		}
	}
	for _, id := range pl.members {
		if id != m.id && id != l.self {
			ask(id, &pb.RateCopy{Without: m.id})
		}
	}
	others, replaced := false, int64(math.MinInt64)
	for range asked {
		if answer := <-answers; answer != nil {
			others = true
			if answer.Replaced != 0 {
				replaced = max(replaced, l.table.Instant()-int64(min(answer.Replaced, math.MaxInt64/2000))*1000)
			}
		}
	}
	ask(m.id, &pb.RateCopy{}) // it comes last: slow members have answered by now
	return <-answers == nil && others && replaced+int64(actTime) < m.settledAt.Load() &&
		!l.still.since(m.confirmedAt.Load(), l.table.Instant())
}

// superseded handles a replica's answer that it has decided about a partition itself, or has another owner. Waiting
// decisions are repeated once this node has the replica's state. Admissions whose clients have their answers count
// then. Admissions of a partition that has moved count at its new owner.
func (l *Limiter) superseded(p int, by string, updates []*update) {
	if p < 0 || p >= len(l.partitions) {
		return
	}
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		part := &l.partitions[p]
		// An answer to updates of an earlier term says nothing about the replica's present state: this node has taken
		// that over since.
		now := termOf(part.number)
		ofNow := func(x *update) bool { return x.part == p && x.term() == now }
		if part.phase == owning && slices.ContainsFunc(updates, ofNow) {
			part.stop()
			part.pullFrom = by
		}
		for _, x := range updates {
			switch {
			case x.part != p || x.state != nil || x.number <= part.handoffNumber:
			case x.decision != nil:
				x.decision.pending.failed.Store(true)
			case !x.takenBack && x.term() == now && !slices.Contains(part.unreplicated, x):
				part.noteUnreplicated(x)
			}
		}
	})
	l.takeOverSoon(p)
}

// replaced takes over the decisions that this node's replica has made in its place.
func (l *Limiter) replaced(p int, by string) {
	if p < 0 || p >= len(l.partitions) || l.place.Load().replica[p] != by {
		return
	}
	l.withPartition(p, func(part *partition) {
		if part.phase == owning {
			part.stop()
			part.pullFrom = by
		}
	})
	l.takeOverSoon(p)
}

// resendStates sends a replica all its states again: it was unreachable for a while, and may have missed some.
func (l *Limiter) resendStates(replica string) {
	pl := l.place.Load()
	for p := range l.partitions {
		if pl.owner[p] == l.self && pl.replica[p] == replica {
			l.markUnsent(p)
		}
	}
	l.wake()
}

// sendState sends the replica of a partition the whole state, unless it was already sent.
func (l *Limiter) sendState(p int) {
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		part, replica := &l.partitions[p], l.place.Load().replica[p]
		if part.phase != owning || part.stateSent || replica == "" {
			return
		}
		part.stateSent = true
		for _, s := range l.chunks(p, windows, nil) {
			l.replicate(replica, &update{part: p, state: s})
		}
	})
}
