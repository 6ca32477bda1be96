package ratelimit

import (
	"sync/atomic"

	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// decision is one replicated decision of this node, and its unconfirmed copies.
type decision struct {
	shard.Decide
	decider   *decider
	placement *placement
	pending   pending
	then      func() // called when the decision is confirmed or has failed
}

// pending counts the unconfirmed updates.
type pending struct {
	left   atomic.Int32
	failed atomic.Bool // a replica has decided for itself: the decision fails
}

func (d *decision) init(dr *decider, requester string, asReplica bool) {
	d.Reset()
	d.decider, d.placement, d.Requester, d.AsReplica, d.Waits = dr, dr.place.Load(), requester, asReplica, d
	d.pending.left.Store(1)
	d.pending.failed.Store(false)
}

// locate finds the shards of the demands, which are locked.
func (d *decision) locate(at []int) {
	l := d.decider
	latest := d.placement == l.place.Load()
	d.At = d.At[:0]
	for _, p := range at {
		place := l.placeOf(d.placement, p, d.Requester)
		place.Confirmed = place.Confirmed && latest
		if d.AsReplica && place.Owner != l.self {
			place.CaughtUp, place.Witness = l.follower.caughtUp(place.Owner), l.peers.witness(d.placement, p)
		}
		d.At = append(d.At, shard.At{Shard: &l.partitions[p].Shard, Place: place})
	}
}

// decide counts or refuses. Hashes may be empty. The counted admissions are valid once finish has ended without a
// failure.
func (d *decision) decide() verdict {
	var room [maxDemands]int
	at := room[:0]
	for i := range d.Demands {
		if len(d.Hashes) == i {
			d.Hashes = append(d.Hashes, d.Demands[i].Key.Hash())
		}
		at = append(at, ratelimit.PartitionOf(d.Hashes[i]))
	}
	d.decideIn(at)
	d.takeOverSoon()
	return d.Verdict
}

func (d *decision) decideIn(at []int) {
	l := d.decider
	l.table.Lock(at)
	defer l.table.Unlock(at)
	d.locate(at)
	out := &l.partitions[at[0]].out
	d.Together(l.table.Instant(), out)
	l.perform(out)
}

// takeOverSoon takes over the partitions that this node may not yet decide about.
func (d *decision) takeOverSoon() {
	for _, p := range d.NotOwned {
		d.decider.mover.takeOverSoon(p)
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
func (dr *decider) decide(demands []ratelimit.Demand, hashes, ids []uint64, standings []ratelimit.Standing,
	asReplica, again bool) verdict {
	own := dr.beginOwn(demands, ids, asReplica)
	own.decision.Hashes = append(own.decision.Hashes, hashes...)
	own.decision.Again, own.decision.Standings = again, standings
	v := own.decision.decide()
	if !dr.finishOwn(own) {
		v = retry
	}
	return v
}

// ownDecision is a decision about a request of this node. Its memory is reused.
type ownDecision struct {
	decision
	done    chan struct{} // receives one value when the decision is confirmed or has failed
	ids     [maxDemands]uint64
	numbers [maxDemands]uint64
}

func newOwnDecision() any {
	own := &ownDecision{done: make(chan struct{}, 1)}
	own.then = func() { own.done <- struct{}{} }
	return own
}

func (dr *decider) beginOwn(demands []ratelimit.Demand, ids []uint64, asReplica bool) *ownDecision {
	own := dr.decisions.Get().(*ownDecision)
	d := &own.decision
	d.init(dr, dr.self, asReplica)
	d.Demands, d.IDs, d.Hashes = demands, append(own.ids[:0], ids...), d.Hashes[:0]
	d.Numbers = append(own.numbers[:0], make([]uint64, len(demands))...)
	return own
}

// finishOwn waits until the decision is confirmed or has failed, and reports which.
func (dr *decider) finishOwn(own *ownDecision) (holds bool) {
	d := &own.decision
	d.finish()
	<-own.done
	holds = !d.failed()
	d.Demands, d.IDs, d.Standings, d.placement = nil, nil, nil, nil
	clear(d.At)
	dr.decisions.Put(own)
	return holds
}

// forget takes back admissions that were counted here, also on the replica.
func (dr *decider) forget(demand *ratelimit.Demand, id uint64, count int64) {
	p, pl := demand.Key.Partition(), dr.place.Load()
	dr.table.WithPartition(p, func(*ratelimit.Partition) {
		place := dr.placeOf(pl, p, "")
		if dr.partitions[p].HasActed() {
			place.Witness = dr.peers.witness(pl, p)
		}
		dr.stepLocked(p, &shard.Forget{Place: place, Demand: *demand, ID: id, Count: count})
	})
}
