package ratelimit

import (
	"math"
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
)

// This file is the owner's side of replication; replica.go is the other one.

// update is what a replica is told: an admission, or the state of a partition.
type update struct {
	part      int
	number    uint64
	id        uint64 // the admission's name; 0: it has none
	again     bool   // it may have been sent, or asked for, before
	demand    ratelimit.Demand
	takenBack bool // the admission does not count after all
	count     int64
	ahead     int64         // nanoseconds by which its instant lies ahead
	decision  *decision     // waits for the replica; nil: its client was answered already
	state     *pb.RateState // instead of a demand
}

func (x *update) term() uint64 {
	if x.state != nil {
		return termOf(x.state.Number)
	}
	return termOf(x.number)
}

// replicate sends to a replica. The caller holds the partition's lock, so that
// updates of a partition arrive in order.
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

// updatesFailed decides about updates that a replica did not confirm, and about
// those that wait behind them. Either the replica is gone, and the owner goes on
// without one until it answers again; or this node was frozen or cut off, and the
// replica may have decided meanwhile: then the decisions that wait do not hold.
func (l *Limiter) updatesFailed(m *member, updates []*update, began int64) {
	holds := m.replicaUnreachable.Load()
	if !holds {
		if holds = l.mayGoOnWithout(m, began) && m.goOn(began); holds {
			updates = slices.Concat(updates, m.updates.waiting()) // decisions behind these wait no longer
			l.noteUnreplicated(updates)
		}
	}
	for _, x := range updates {
		l.markUnsent(x.part) // what of it arrived is unknown
		if d := x.decision; d != nil {
			x.decision = nil
			if !holds || !l.net.Belongs() || !l.stands(x) {
				d.pending.failed.Store(true)
			}
			d.finish()
		}
	}
	if !holds {
		l.wake()
	}
}

// stands reports whether what an update tells of still counts here: the partition may
// have been taken over from the replica since.
func (l *Limiter) stands(x *update) (stands bool) {
	l.withPartition(x.part, func(part *partition) { stands = part.phase == owning && x.term() == termOf(part.number) })
	return stands
}

// withPartition is Table.WithPartition for what needs no windows.
func (l *Limiter) withPartition(p int, do func(part *partition)) {
	l.table.WithPartition(p, func(*ratelimit.Partition) { do(&l.partitions[p]) })
}

// markUnsent has the next sendState send the whole state of a partition.
func (l *Limiter) markUnsent(p int) {
	if p >= 0 && p < len(l.partitions) {
		l.withPartition(p, func(part *partition) { part.stateSent = false })
	}
}

// noteUnreplicated notes admissions that hold and that only this node knows of.
func (l *Limiter) noteUnreplicated(updates []*update) {
	for _, x := range updates {
		if x.state == nil {
			l.withPartition(x.part, func(part *partition) { part.noteUnreplicated(x) })
		}
	}
}

// actTime is more than it takes a replica that runs to decide about what it was asked.
const actTime = 100 * time.Millisecond

// mayGoOnWithout reports whether an owner may go on without a replica that did not
// answer since an instant: the replica is gone; or it does not answer again, another
// member does, and the replica cannot have decided. It can have when this node stood
// still after the replica confirmed anything last, and when another member had it
// decide and this node has not settled with it since.
func (l *Limiter) mayGoOnWithout(m *member, began int64) bool {
	if l.net.Lost(m.id) {
		return true
	}
	l.notHeard(m, began)
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
	ask(m.id, &pb.RateCopy{}) // it comes last: who was slow has answered by now
	return <-answers == nil && others && replaced+int64(actTime) < m.settledAt.Load() &&
		!l.still.since(m.confirmedAt.Load(), l.table.Instant())
}

// superseded follows a replica's answer that it has decided about a partition
// itself, or knows of another owner. Decisions that wait are made anew, once this
// node has what the replica knows. Admissions whose clients were answered count
// then. What went away with the partition counts where the partition is.
func (l *Limiter) superseded(p int, by string, updates []*update) {
	if p < 0 || p >= len(l.partitions) {
		return
	}
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		part := &l.partitions[p]
		// An answer to updates of an earlier term says nothing of what the replica
		// knows now: this node has taken that over since.
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

// replaced has this node take over what its replica has decided in its place.
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

// resendStates sends a replica every state that it is to have: it was unreachable
// for a while, and may have missed some.
func (l *Limiter) resendStates(replica string) {
	pl := l.place.Load()
	for p := range l.partitions {
		if pl.owner[p] == l.self && pl.replica[p] == replica {
			l.markUnsent(p)
		}
	}
	l.wake()
}

// sendState sends the replica of a partition the whole state, unless it was sent.
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
