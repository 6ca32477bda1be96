package ratelimit

import (
	"math"
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// This file is the owner's side of replication; replica.go is the other side.

// maxStateBatch bounds the states in one message, in keys and admissions.
const maxStateBatch = 1 << 17

// sendUpdates sends one batch to a replica.
func (l *Limiter) sendUpdates(m *member, batch []*shard.Update) {
	q, text := &pb.RateCopy{}, []byte(nil)
	begin, weight := 0, 0
	for i, x := range batch {
		if x.State != nil {
			if weight += len(x.State.Keys) + len(x.State.Ages); weight > maxStateBatch && i > begin {
				l.sendUpdate(m, q, batch[begin:i])
				q, begin, weight = &pb.RateCopy{}, i, 0
			}
			x.State.Behind = uint32(len(q.Parts))
			q.States = append(q.States, x.State)
			continue
		}
		if x.Again {
			q.Again = append(q.Again, uint32(len(q.Parts)))
		}
		if x.Demand.Shared {
			q.Shared = append(q.Shared, uint32(len(q.Parts)))
		}
		q.Parts = append(q.Parts, uint32(x.Part))
		q.Numbers = append(q.Numbers, x.Number)
		start := len(text)
		text = shard.AppendKey(text, x.Demand.Key)
		q.Keys = append(q.Keys, text[start:len(text):len(text)])
		q.Limits = append(q.Limits, x.Demand.Limit)
		q.Periods = append(q.Periods, int64(x.Demand.Period))
		q.Taken = append(q.Taken, x.TakenBack)
		q.Counts = append(q.Counts, x.Count)
		q.Aheads = append(q.Aheads, x.Ahead)
		q.Ids = append(q.Ids, x.ID)
	}
	l.sendUpdate(m, q, batch[begin:])
}

// sendUpdate sends one message and acts on its answer.
func (l *Limiter) sendUpdate(m *member, q *pb.RateCopy, updates []*shard.Update) {
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
	lacks := func(x *shard.Update) bool {
		return slices.Contains(answer.Ahead, uint32(x.Part)) || slices.Contains(answer.Needs, uint32(x.Part))
	}
	for _, x := range updates {
		if d, waits := x.Waits.(*decision); waits {
			if x.State != nil && lacks(x) {
				d.pending.failed.Store(true)
			}
			d.finish()
		} else if x.State != nil && !x.State.More && !lacks(x) {
			l.table.WithPartition(x.Part, func(*ratelimit.Partition) {
				l.stepLocked(x.Part, shard.Copied{Place: shard.Place{ReplicaSilent: m.replicaUnreachable.Load()}})
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
func (l *Limiter) updatesFailed(m *member, updates []*shard.Update, began int64) {
	holds := m.replicaUnreachable.Load()
	if !holds {
		if holds = l.mayGoOnWithout(m, began) && m.goOn(began); holds {
			updates = slices.Concat(updates, m.updates.waiting()) // decisions behind these wait no longer
			l.noteUnreplicated(updates)
		}
	}
	for _, x := range updates {
		l.markUnsent(x.Part) // the replica may have received a part of it
		if d, waits := x.Waits.(*decision); waits {
			x.Waits = nil
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

// stillCounts reports whether the admission of an update still counts here.
func (l *Limiter) stillCounts(x *shard.Update) (counts bool) {
	l.withShard(x.Part, func(s *shard.Shard) { counts = s.StillCounts(x) })
	return counts
}

// markUnsent makes the next sendState send the whole state of a partition.
func (l *Limiter) markUnsent(p int) {
	if p >= 0 && p < len(l.partitions) {
		l.step(p, shard.Unsent{})
	}
}

// noteUnreplicated records confirmed admissions that only this node has.
func (l *Limiter) noteUnreplicated(updates []*shard.Update) {
	for _, x := range updates {
		if x.State == nil {
			l.step(x.Part, shard.Unreplicated{Update: x})
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

// superseded handles a replica's answer that it has decided about a partition itself, or has another owner.
func (l *Limiter) superseded(p int, by string, updates []*shard.Update) {
	if p < 0 || p >= len(l.partitions) {
		return
	}
	l.step(p, &shard.Superseded{By: by, Updates: updates})
	l.takeOverSoon(p)
}

// replaced takes over the decisions that this node's replica has made in its place.
func (l *Limiter) replaced(p int, by string) {
	if p < 0 || p >= len(l.partitions) || l.place.Load().replica[p] != by {
		return
	}
	l.step(p, shard.Replaced{By: by})
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
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		l.stepLocked(p, &shard.Resend{Place: l.placeOf(l.place.Load(), p)})
	})
}
