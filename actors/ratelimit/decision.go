package ratelimit

import (
	"sync/atomic"

	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// slot is a shard of this node, and its effects until they are performed.
type slot struct {
	shard.Shard
	out shard.Effects
}

// step runs a message in a shard.
func (l *Limiter) step(p int, m shard.Message) {
	l.table.WithPartition(p, func(*ratelimit.Partition) { l.stepLocked(p, m) })
}

// stepLocked is step for callers that have the partition locked.
func (l *Limiter) stepLocked(p int, m shard.Message) {
	s := &l.partitions[p]
	s.Step(m, l.table.Instant(), &s.out)
	l.perform(&s.out)
}

// withShard reads a shard.
func (l *Limiter) withShard(p int, do func(s *shard.Shard)) {
	l.table.WithPartition(p, func(*ratelimit.Partition) { do(&l.partitions[p].Shard) })
}

// perform does what shards have asked for. Their partitions are locked, so that the updates of each arrive in order.
func (l *Limiter) perform(out *shard.Effects) {
	for i, x := range out.Sends {
		if d, waits := x.Waits.(*decision); waits {
			d.pending.left.Add(1)
		}
		l.member(x.To).updates.put(x)
		out.Sends[i] = nil
	}
	for i, x := range out.Failed {
		x.Waits.(*decision).pending.failed.Store(true)
		out.Failed[i] = nil
	}
	if out.AsReplica > 0 {
		l.asReplica.Add(out.AsReplica)
	}
	if out.Merged > 0 {
		l.merged.Add(out.Merged)
	}
	out.Sends, out.Failed, out.AsReplica, out.Merged = out.Sends[:0], out.Failed[:0], 0, 0
}

// placeOf describes the members of a partition to its shard.
func (l *Limiter) placeOf(pl *placement, p int) shard.Place {
	at := shard.Place{Self: l.self, Owner: pl.owner[p], Replica: pl.replica[p], Confirmed: l.net.Belongs()}
	if at.Replica != "" && at.Replica != l.self {
		at.ReplicaSilent = l.member(at.Replica).replicaUnreachable.Load()
	}
	return at
}

// decision is one replicated decision of this node, and its unconfirmed copies.
type decision struct {
	shard.Decide
	limiter   *Limiter
	placement *placement
	out       shard.Effects
	pending   pending
	then      func() // called when the decision is confirmed or has failed
}

// pending counts the unconfirmed updates.
type pending struct {
	left   atomic.Int32
	failed atomic.Bool // a replica has decided for itself: the decision fails
}

func (d *decision) init(l *Limiter, requester string, asReplica bool) {
	d.Reset()
	d.limiter, d.placement, d.Requester, d.AsReplica, d.Waits = l, l.place.Load(), requester, asReplica, d
	d.pending.left.Store(1)
	d.pending.failed.Store(false)
}

// locate finds the shards of the demands, which are locked.
func (d *decision) locate(at []int) {
	l := d.limiter
	latest := d.placement == l.place.Load()
	d.At = d.At[:0]
	for _, p := range at {
		place := l.placeOf(d.placement, p)
		place.Confirmed = place.Confirmed && latest
		place.CaughtUp = place.Owner != l.self && d.AsReplica && l.caughtUp(place.Owner)
		d.At = append(d.At, shard.At{Shard: &l.partitions[p].Shard, Place: place})
	}
}

// decide counts or refuses. The counted admissions are valid once finish has ended without a failure.
func (d *decision) decide() verdict {
	var room [maxDemands]int
	at := room[:0]
	d.Hashes = d.Hashes[:0]
	for i := range d.Demands {
		hash := d.Demands[i].Key.Hash()
		at, d.Hashes = append(at, ratelimit.PartitionOf(hash)), append(d.Hashes, hash)
	}
	d.decideIn(at)
	d.takeOverSoon()
	return d.Verdict
}

func (d *decision) decideIn(at []int) {
	l := d.limiter
	l.table.Lock(at)
	defer l.table.Unlock(at)
	d.locate(at)
	d.Together(l.table.Instant(), &d.out)
	l.perform(&d.out)
}

// takeOverSoon takes over the partitions that this node may not yet decide about.
func (d *decision) takeOverSoon() {
	for _, p := range d.NotOwned {
		d.limiter.takeOverSoon(p)
	}
}

// finish records one confirmation; the last one ends the decision.
func (d *decision) finish() {
	if d.pending.left.Add(-1) == 0 {
		if d.then != nil {
			d.then()
		}
	}
}

// failed reports whether the decision failed. Its admissions stay counted: the requester retries under the same name,
// or takes them back.
func (d *decision) failed() bool { return d.pending.failed.Load() }

// decide makes a decision about a request of this node.
func (l *Limiter) decide(demands []ratelimit.Demand, ids []uint64, standings []ratelimit.Standing,
	asReplica, again bool) verdict {
	own := l.beginOwn(demands, ids, asReplica)
	own.decision.Again, own.decision.Standings = again, standings
	v := own.decision.decide()
	if !l.finishOwn(own) {
		v = retry
	}
	return v
}

// ownDecision is a decision about a request of this node. Its memory is reused.
type ownDecision struct {
	decision
	done     chan struct{} // receives one value when the decision is confirmed or has failed
	ids      [maxDemands]uint64
	instants [maxDemands]int64
	numbers  [maxDemands]uint64
}

func newOwnDecision() any {
	own := &ownDecision{done: make(chan struct{}, 1)}
	own.then = func() { own.done <- struct{}{} }
	return own
}

func (l *Limiter) beginOwn(demands []ratelimit.Demand, ids []uint64, asReplica bool) *ownDecision {
	own := l.decisions.Get().(*ownDecision)
	d := &own.decision
	d.init(l, l.self, asReplica)
	d.Demands, d.IDs = demands, append(own.ids[:0], ids...)
	d.Instants = append(own.instants[:0], make([]int64, len(demands))...)
	d.Numbers = append(own.numbers[:0], make([]uint64, len(demands))...)
	return own
}

// finishOwn waits until the decision is confirmed or has failed, and reports which.
func (l *Limiter) finishOwn(own *ownDecision) (holds bool) {
	d := &own.decision
	d.finish()
	<-own.done
	holds = !d.failed()
	d.Demands, d.IDs, d.Standings, d.placement = nil, nil, nil, nil
	clear(d.At)
	l.decisions.Put(own)
	return holds
}

// forget takes back admissions that were counted here, also on the replica.
func (l *Limiter) forget(demand *ratelimit.Demand, id uint64, instant, count int64) {
	p := demand.Key.Partition()
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		l.stepLocked(p, &shard.Forget{Place: l.placeOf(l.place.Load(), p), Demand: *demand, ID: id, Instant: instant,
			Count: count})
	})
}
