package ratelimit

import (
	"sync/atomic"

	"castellan/domain/ratelimit"
)

// decision is one replicated decision of this node: it is made only where this
// node may make it, and the replicas know of it before the client does.
type decision struct {
	limiter   *Limiter
	placement *placement
	requester string // the member whose request it is
	asReplica bool   // the owner is unreachable
	demands   []ratelimit.Demand
	instants  []int64  // at which each demand was counted, by this node's clock
	numbers   []uint64 // of each admission that the requester learns of as the replica; else 0
	count     int64    // admissions for each demand
	ahead     int64    // nanoseconds by which their instant lies ahead
	notOwned  []int    // partitions that are still to be taken over
	pending   pending
	then      func() // called when it is known whether the decision holds
}

// pending counts the updates that are not confirmed.
type pending struct {
	left   atomic.Int32
	failed atomic.Bool // a replica has decided for itself: the decision does not hold
}

var _ ratelimit.Gate = (*decision)(nil)

func (d *decision) init(l *Limiter, requester string, asReplica bool) {
	d.limiter, d.placement, d.requester, d.asReplica = l, l.place.Load(), requester, asReplica
	d.notOwned, d.count, d.ahead = d.notOwned[:0], 0, 0
	d.pending.left.Store(1)
	d.pending.failed.Store(false)
}

// MayDecide implements ratelimit.Gate.
func (d *decision) MayDecide(p int) bool {
	l, pl := d.limiter, d.placement
	part := &l.partitions[p]
	switch {
	case pl != l.place.Load() || !l.net.Belongs():
		return false
	case pl.owner[p] == l.self:
		if part.phase != owning {
			d.notOwned = append(d.notOwned, p)
			return false
		}
		return true
	}
	return d.asReplica && pl.replica[p] == l.self && part.act()
}

// Counted implements ratelimit.Gate.
func (d *decision) Counted(i, p int, instant, count int64) {
	l, pl := d.limiter, d.placement
	part := &l.partitions[p]
	part.number++
	d.instants[i], d.count = instant, count
	if pl.owner[p] != l.self { // a replica that decides has no replica
		l.asReplica.Add(1)
		return
	}
	switch replica := pl.replica[p]; replica {
	case "":
	case d.requester: // the answer tells it
		d.numbers[i] = part.number
	default:
		x := &update{part: p, number: part.number, demand: d.demands[i], count: count, ahead: d.ahead}
		if l.member(replica).replicaUnreachable.Load() {
			part.noteUnreplicated(x)
		} else {
			d.pending.left.Add(1)
			x.decision = d
		}
		l.replicate(replica, x)
	}
}

// decide counts or refuses. What it counted holds once finish has ended without a
// failure.
func (d *decision) decide(standings []ratelimit.Standing) verdict {
	admits, open := d.limiter.table.Decide(d.demands, standings, d)
	switch {
	case !open:
		for _, p := range d.notOwned {
			d.limiter.takeOverSoon(p)
		}
		return retry
	case !admits:
		return refused
	}
	return admitted
}

// finish notes one confirmation; the last one ends the decision.
func (d *decision) finish() {
	if d.pending.left.Add(-1) == 0 {
		if d.failed() {
			d.takeBack()
		}
		if d.then != nil {
			d.then()
		}
	}
}

// failed tells whether the decision turned out not to hold.
func (d *decision) failed() bool { return d.pending.failed.Load() }

// takeBack forgets what a failed decision has counted.
func (d *decision) takeBack() {
	for i, instant := range d.instants {
		d.limiter.forget(&d.demands[i], instant, d.count)
	}
}

// decide makes a decision about a request of this node.
func (l *Limiter) decide(demands []ratelimit.Demand, standings []ratelimit.Standing, asReplica bool) verdict {
	own := l.beginOwn(demands, asReplica)
	v := own.decision.decide(standings)
	if !l.finishOwn(own) {
		v = retry
	}
	return v
}

// ownDecision is a decision about a request of this node. Its memory is used again.
type ownDecision struct {
	decision
	done     chan struct{} // gets one value when it is known whether the decision holds
	instants [maxDemands]int64
	numbers  [maxDemands]uint64
}

func newOwnDecision() any {
	own := &ownDecision{done: make(chan struct{}, 1)}
	own.then = func() { own.done <- struct{}{} }
	return own
}

func (l *Limiter) beginOwn(demands []ratelimit.Demand, asReplica bool) *ownDecision {
	own := l.decisions.Get().(*ownDecision)
	d := &own.decision
	d.init(l, l.self, asReplica)
	d.demands = demands
	d.instants = append(own.instants[:0], make([]int64, len(demands))...)
	d.numbers = append(own.numbers[:0], make([]uint64, len(demands))...)
	return own
}

// finishOwn waits until it is known whether the decision holds, and tells.
func (l *Limiter) finishOwn(own *ownDecision) (holds bool) {
	own.decision.finish()
	<-own.done
	holds = !own.decision.failed()
	own.decision.demands, own.decision.placement = nil, nil
	l.decisions.Put(own)
	return holds
}

// forget takes back admissions that were counted here at an instant, and has the
// replica do the same.
func (l *Limiter) forget(demand *ratelimit.Demand, instant, count int64) {
	p := demand.Key.Partition()
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		w, forgotten := windows.Get(demand.Key), int64(0)
		for w != nil && forgotten < count && w.Forget(instant) {
			forgotten++
		}
		if forgotten == 0 {
			return
		}
		pl, part := l.place.Load(), &l.partitions[p]
		part.number++
		if replica := pl.replica[p]; pl.owner[p] == l.self && replica != "" {
			l.replicate(replica, &update{part: p, number: part.number, demand: *demand, takenBack: true, count: forgotten})
		}
	})
}
