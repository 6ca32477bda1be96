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
func (r *replicator) sendUpdates(m *member, batch []*shard.Update) {
	q, text := &pb.RateCopy{}, []byte(nil)
	begin, weight := 0, 0
	for i, x := range batch {
		if x.State != nil {
			if weight += len(x.State.Keys) + len(x.State.Ages); weight > maxStateBatch && i > begin {
				r.sendUpdate(m, q, batch[begin:i])
				q, begin, weight = &pb.RateCopy{}, i, 0
			}
			x.State.Behind = uint32(len(q.Parts))
			q.States = append(q.States, x.State)
			continue
		}
		to := q
		if x.Witness {
			if q.Witness == nil {
				q.Witness = &pb.RateCopy{}
			}
			to = q.Witness
		}
		text = encodeUpdate(to, x, text)
	}
	r.sendUpdate(m, q, batch[begin:])
}

// encodeUpdate appends an update to a message, and the encoded key to text.
func encodeUpdate(q *pb.RateCopy, x *shard.Update, text []byte) []byte {
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
	return text
}

// sendUpdate sends one message and acts on its answer.
func (r *replicator) sendUpdate(m *member, q *pb.RateCopy, updates []*shard.Update) {
	r.copies.Add(1)
	r.copied.Add(int64(len(q.Parts)))
	began := r.table.Instant()
	got, err := r.net.Ask(r.ctx, m.copying.patience(), m.id, updateName, q)
	answer, ok := got.(*pb.RateCopied)
	if ok = ok && err == nil; !ok {
		r.updatesFailed(m, updates, began)
		return
	}
	now := r.table.Instant()
	m.copying.observe(time.Duration(now-began), now)
	storeMax(&m.confirmedAt, began)
	if m.replicaUnreachable.Swap(false) {
		r.resendStates(m.id)
	}
	for _, p := range answer.Ahead {
		r.superseded(int(p), m.id, updates)
	}
	lacks := func(x *shard.Update) bool {
		return slices.Contains(answer.Ahead, uint32(x.Part)) || slices.Contains(answer.Needs, uint32(x.Part))
	}
	for _, x := range updates {
		if d, waits := x.Waits.(*decision); waits {
			if x.State != nil && lacks(x) || x.Witness && !r.net.Belongs() || !r.stillCounts(x) {
				d.pending.failed.Store(true)
			}
			d.finish()
		} else if x.State != nil && !x.State.More && !lacks(x) {
			r.table.WithPartition(x.Part, func(*ratelimit.Partition) {
				r.stepLocked(x.Part, shard.Copied{Place: shard.Place{ReplicaSilent: m.replicaUnreachable.Load()}})
			})
		}
	}
	for _, p := range answer.Needs {
		r.markUnsent(int(p))
		r.sendState(int(p))
	}
}

// updatesFailed handles updates that a replica did not confirm, and those that wait behind them. If the replica is
// gone, the owner goes on without one until it answers again, and the waiting decisions wait for a witness instead. If
// this node was frozen or cut off, the replica may have decided in the meantime: then the waiting decisions fail.
func (r *replicator) updatesFailed(m *member, updates []*shard.Update, began int64) {
	if updates = failWitness(updates); len(updates) == 0 {
		return
	}
	holds := m.replicaUnreachable.Load()
	if !holds {
		if holds = r.mayGoOnWithout(m, began) && m.goOn(began); holds {
			behind := slices.DeleteFunc(m.updates.waiting(), func(x *shard.Update) bool { return x.Witness })
			updates = slices.Concat(updates, behind) // decisions behind these wait no longer
			r.noteUnreplicated(updates)
		}
	}
	for _, x := range updates {
		r.markUnsent(x.Part) // the replica may have received a part of it
		if d, waits := x.Waits.(*decision); waits {
			x.Waits = nil
			if !holds || !r.net.Belongs() || !r.stillCounts(x) {
				d.pending.failed.Store(true)
			} else if x.State == nil && r.sendWitness(x, d) {
				continue
			}
			d.finish()
		}
	}
	if !holds {
		r.mover.wake()
	}
}

// stillCounts reports whether the admission of an update still counts here. If this node has adopted its replica's
// state since, the admission is lost, although the replica may confirm it later: the update waited behind others.
func (r *replicator) stillCounts(x *shard.Update) (counts bool) {
	r.withShard(x.Part, func(s *shard.Shard) { counts = s.StillCounts(x) })
	return counts
}

// markUnsent makes the next sendState send the whole state of a partition.
func (r *replicator) markUnsent(p int) {
	if p >= 0 && p < len(r.partitions) {
		r.step(p, shard.Unsent{})
	}
}

// noteUnreplicated records confirmed admissions that only this node has.
func (r *replicator) noteUnreplicated(updates []*shard.Update) {
	for _, x := range updates {
		if x.State == nil {
			r.step(x.Part, shard.Unreplicated{Update: x})
		}
	}
}

// actTime is longer than a running replica takes to decide about a query.
const actTime = 100 * time.Millisecond

// mayGoOnWithout reports whether an owner may go on without a replica that has not answered since an instant. It may if
// the replica is gone, and all others have told what they have witnessed of it. It also may if another member answers,
// the replica still does not, and the replica cannot have decided. The replica can have decided in two cases. Either
// this node stalled after the replica's last confirmation, or another member had the replica decide and this node has
// not settled with it since.
func (r *replicator) mayGoOnWithout(m *member, began int64) bool {
	if r.net.Lost(m.id) {
		return r.takeOverLost(m.id)
	}
	r.peers.recordSilence(m, began)
	pl := r.place.Load()
	asked, answers := 0, make(chan *pb.RateCopied, len(pl.members)+1)
	ask := func(id string, q *pb.RateCopy) {
		asked++
		if !r.inBackground(func() {
			got, _ := r.net.Ask(r.ctx, m.copying.patience(), id, updateName, q)
			answer, _ := got.(*pb.RateCopied)
			answers <- answer
		}) {
			answers <- nil
		}
	}
	for _, id := range pl.members {
		if id != m.id && id != r.self {
			ask(id, &pb.RateCopy{Without: m.id})
		}
	}
	others, replaced := false, int64(math.MinInt64)
	for range asked {
		if answer := <-answers; answer != nil {
			others = true
			if answer.Replaced != 0 {
				replaced = max(replaced, r.table.Instant()-int64(min(answer.Replaced, math.MaxInt64/2000))*1000)
			}
		}
	}
	ask(m.id, &pb.RateCopy{}) // it comes last: slow members have answered by now
	return <-answers == nil && others && replaced+int64(actTime) < m.settledAt.Load() &&
		!r.peers.still.since(m.confirmedAt.Load(), r.table.Instant())
}

// superseded handles a replica's answer that it has decided about a partition itself, or has another owner.
func (r *replicator) superseded(p int, by string, updates []*shard.Update) {
	if p < 0 || p >= len(r.partitions) {
		return
	}
	r.step(p, &shard.Superseded{By: by, Updates: updates})
	r.mover.takeOverSoon(p)
}

// replaced takes over the decisions that this node's replica has made in its place.
func (r *replicator) replaced(p int, by string) {
	if p < 0 || p >= len(r.partitions) || r.place.Load().replica[p] != by {
		return
	}
	r.step(p, shard.Replaced{By: by})
	r.mover.takeOverSoon(p)
}

// resendStates sends a replica all its states again: it was unreachable for a while, and may have missed some.
func (r *replicator) resendStates(replica string) {
	pl := r.place.Load()
	for p := range r.partitions {
		if pl.owner[p] == r.self && pl.replica[p] == replica {
			r.markUnsent(p)
		}
	}
	r.mover.wake()
}

// sendState sends the replica of a partition the whole state, unless it was already sent.
func (r *replicator) sendState(p int) {
	r.table.WithPartition(p, func(*ratelimit.Partition) {
		r.stepLocked(p, &shard.Resend{Place: r.placeOf(r.place.Load(), p, "")})
	})
}
