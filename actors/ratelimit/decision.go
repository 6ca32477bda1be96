package ratelimit

import (
	"slices"
	"sync/atomic"

	"castellan/domain/guard/ratelimit"
)

// decision is one replicated decision of this node. It is made only if this node may decide, and the replicas receive
// it before the client does.
type decision struct {
	limiter   *Limiter
	placement *placement
	requester string // the member that sent the request
	asReplica bool   // the owner is unreachable
	demands   []ratelimit.Demand
	ids       []uint64 // the name of each demand's admission; 0: none
	again     bool     // this may be a retry
	order     []int    // if only some demands are decided: their indexes
	looked    int      // demands for which MayDecide was called
	known     []int    // demands whose admissions this node already has
	instants  []int64  // when each demand was counted, by this node's clock
	numbers   []uint64 // the number of each admission that the requester learns as the replica; else 0
	count     int64    // admissions for each demand
	ahead     int64    // nanoseconds from now to their instant
	notOwned  []int    // partitions that must first be taken over
	pending   pending
	then      func() // called when the decision is confirmed or has failed
}

// pending counts the unconfirmed updates.
type pending struct {
	left   atomic.Int32
	failed atomic.Bool // a replica has decided for itself: the decision fails
}

var _ ratelimit.Gate = (*decision)(nil)

func (d *decision) init(l *Limiter, requester string, asReplica bool) {
	d.limiter, d.placement, d.requester, d.asReplica = l, l.place.Load(), requester, asReplica
	d.notOwned, d.count, d.ahead = d.notOwned[:0], 0, 0
	d.order, d.looked, d.known, d.again = nil, 0, d.known[:0], false
	d.pending.left.Store(1)
	d.pending.failed.Store(false)
}

// MayDecide is called for each demand in turn. A demand whose admission this node already has is not counted again: the
// result is false after the last one.
func (d *decision) MayDecide(p int) bool {
	l, pl := d.limiter, d.placement
	part := &l.partitions[p]
	i := d.demandAt(d.looked)
	d.looked++
	owns := pl.owner[p] == l.self
	switch {
	case pl != l.place.Load() || !l.net.Belongs():
		return false
	case owns && part.phase != owning:
		d.notOwned = append(d.notOwned, p)
		return false
	case !owns && (!d.asReplica || pl.replica[p] != l.self || !part.mayAct() || !l.caughtUp(pl.owner[p])):
		return false
	}
	if now := l.table.Instant(); d.ids[i] != 0 && (d.again || now < part.recent.mergedUntil) {
		if x := part.recent.find(d.ids[i], now); x != nil {
			d.known = append(d.known, i)
			d.repeat(i, p, x)
		}
	}
	if len(d.known) > 0 {
		return !d.isLast()
	}
	return owns || part.act()
}

// demandAt returns the n-th demand to be decided.
func (d *decision) demandAt(n int) int {
	if d.order != nil {
		return d.order[n]
	}
	return n
}

// isLast reports whether MayDecide was called for the last demand.
func (d *decision) isLast() bool {
	if d.order != nil {
		return d.looked == len(d.order)
	}
	return d.looked == len(d.demands)
}

// repeat sends an existing admission to the replica again. The requester may have no answer because the replica did not
// confirm it.
func (d *decision) repeat(i, p int, x *named) {
	part := &d.limiter.partitions[p]
	d.instants[i] = x.instant
	if d.placement.owner[p] == d.limiter.self {
		part.number++
		d.copy(i, p, part.number, int64(x.count), true)
	}
}

func (d *decision) Counted(n, p int, instant, count int64) {
	l, i := d.limiter, d.demandAt(n)
	part := &l.partitions[p]
	part.number++
	d.instants[i], d.count = instant, count
	if d.ids[i] != 0 {
		part.recent.note(named{d.ids[i], d.demands[i].Key.Fingerprint(), instant, int32(count)}, instant)
	}
	if d.placement.owner[p] != l.self { // a replica that decides has no replica
		l.asReplica.Add(1)
		return
	}
	d.copy(i, p, part.number, count, d.again)
}

// copy sends an admission to the replica.
func (d *decision) copy(i, p int, number uint64, count int64, again bool) {
	l := d.limiter
	switch replica := d.placement.replica[p]; replica {
	case "":
	case d.requester: // the answer carries it
		d.numbers[i] = number
	default:
		x := &update{part: p, number: number, id: d.ids[i], again: again, demand: d.demands[i], count: count,
			ahead: d.ahead}
		if l.member(replica).replicaUnreachable.Load() {
			l.partitions[p].noteUnreplicated(x)
		} else {
			d.pending.left.Add(1)
			x.decision = d
		}
		l.replicate(replica, x)
	}
}

// decide counts or refuses. The counted admissions are valid once finish has ended without a failure.
func (d *decision) decide(standings []ratelimit.Standing) verdict {
	admits, open := d.limiter.table.Decide(d.demands, standings, d)
	switch {
	case len(d.known) > 0:
		return d.decideRest(standings)
	case !open:
		return d.wait()
	case !admits:
		return refused
	}
	return admitted
}

// wait is the verdict until this node may decide.
func (d *decision) wait() verdict {
	for _, p := range d.notOwned {
		d.limiter.takeOverSoon(p)
	}
	return retry
}

// decideRest decides about the demands that this node has not yet admitted.
func (d *decision) decideRest(standings []ratelimit.Standing) verdict {
	known := slices.Clone(d.known)
	d.known, d.looked, d.order = d.known[:0], 0, []int{}
	var rest []ratelimit.Demand
	for i := range d.demands {
		if !slices.Contains(known, i) {
			d.order, rest = append(d.order, i), append(rest, d.demands[i])
		}
	}
	d.limiter.table.Look(d.limiter.ctx, d.demands, standings)
	for i := range standings {
		standings[i].Retry, standings[i].Sharing = 0, ratelimit.Alone // it is admitted
	}
	if len(rest) == 0 {
		return admitted
	}
	some := make([]ratelimit.Standing, len(rest))
	admits, open := d.limiter.table.Decide(rest, some, d)
	for n, i := range d.order {
		standings[i] = some[n]
	}
	switch {
	case !open:
		return d.wait()
	case !admits:
		return refused
	}
	return admitted
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
	own.decision.again = again
	v := own.decision.decide(standings)
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
	d.demands, d.ids = demands, append(own.ids[:0], ids...)
	d.instants = append(own.instants[:0], make([]int64, len(demands))...)
	d.numbers = append(own.numbers[:0], make([]uint64, len(demands))...)
	return own
}

// finishOwn waits until the decision is confirmed or has failed, and reports which.
func (l *Limiter) finishOwn(own *ownDecision) (holds bool) {
	own.decision.finish()
	<-own.done
	holds = !own.decision.failed()
	own.decision.demands, own.decision.ids, own.decision.placement = nil, nil, nil
	l.decisions.Put(own)
	return holds
}

// forget takes back admissions that were counted here, also on the replica. Unnamed admissions are identified by their
// instant.
func (l *Limiter) forget(demand *ratelimit.Demand, id uint64, instant, count int64) {
	p := demand.Key.Partition()
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		part, forgotten := &l.partitions[p], int64(0)
		if !part.hasDecided() {
			return // the node that decided notifies this one
		}
		if id != 0 {
			forgotten = l.forgetNamed(windows, part, demand.Key, id, count)
		} else if w := windows.Get(demand.Key); w != nil {
			for forgotten < count && w.Forget(instant) {
				forgotten++
			}
		}
		if forgotten == 0 {
			return
		}
		pl := l.place.Load()
		part.number++
		if replica := pl.replica[p]; pl.owner[p] == l.self && replica != "" {
			l.replicate(replica, &update{part: p, number: part.number, id: id, demand: *demand, takenBack: true,
				count: forgotten})
		}
	})
}
