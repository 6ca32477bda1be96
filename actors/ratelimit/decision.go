package ratelimit

import (
	"sync/atomic"

	"castellan/domain/ratelimit"
)

// gate is one decision of this node: it lets it be made only where this node may,
// and has the stand-ins know of it before anybody hears of it.
type decision struct {
	limiter   *Limiter
	placement *placement
	requester string // whose request it is
	asReplica bool   // in the place of a silent owner
	demands   []ratelimit.Demand
	instants  []int64  // what each demand was counted as, by the clock here
	numbers   []uint64 // and as which of its partition, where the asker stands in
	count     int64    // how many each demand counted
	ahead     int64    // as of so much later
	notOwned  []int    // partitions that are still to be taken over
	pending   pending
	then      func() // called when the decision holds, or does not
}

// wait counts the copies that are not confirmed yet.
type pending struct {
	left   atomic.Int32
	failed atomic.Bool // a stand-in has decided for itself: the decision does not hold
}

var _ ratelimit.Gate = (*decision)(nil)

func (d *decision) init(l *Limiter, requester string, asReplica bool) {
	d.limiter, d.placement, d.requester, d.asReplica = l, l.place.Load(), requester, asReplica
	d.notOwned, d.count, d.ahead = d.notOwned[:0], 0, 0
	d.pending.left.Store(1)
	d.pending.failed.Store(false)
}

// Open implements ratelimit.Gate.
func (d *decision) MayDecide(p int) bool {
	l := d.limiter
	pl, r := d.placement, &l.partitions[p]
	switch {
	case pl != l.place.Load() || !l.net.Belongs():
		return false
	case pl.owner[p] == l.self:
		if r.state != owning {
			d.notOwned = append(d.notOwned, p)
			return false
		}
		return true
	case d.asReplica && pl.replica[p] == l.self && r.whole && r.state == idle:
		if !r.stands {
			r.stands = true
			r.number = (r.number>>term + 1) << term
		}
		return true
	}
	return false
}

// Counted implements ratelimit.Gate.
func (d *decision) Counted(i, p int, instant, count int64) {
	l := d.limiter
	pl, r := d.placement, &l.partitions[p]
	r.number++
	d.instants[i], d.count = instant, count
	if pl.owner[p] != l.self { // the stand-in has none itself
		l.asReplica.Add(1)
		return
	}
	switch next := pl.replica[p]; next {
	case "":
	case d.requester: // it is told by the answer
		d.numbers[i] = r.number
	default:
		x := &update{part: p, number: r.number, demand: d.demands[i], count: count, ahead: d.ahead}
		if l.member(next).replicaUnreachable.Load() {
			r.noteUnreplicated(x)
		} else {
			d.pending.left.Add(1)
			x.decision = d
		}
		l.replicate(next, x)
	}
}

// decide decides; what it counts holds once finish has come to an end.
func (d *decision) decide(stands []ratelimit.Standing) verdict {
	ok, open := d.limiter.table.Decide(d.demands, stands, d)
	switch {
	case !open:
		for _, p := range d.notOwned {
			d.limiter.takeOverSoon(p)
		}
		return retry
	case !ok:
		return refused
	}
	return admitted
}

// finish notes that one thing less is waited for.
func (d *decision) finish() {
	if d.pending.left.Add(-1) == 0 {
		if d.pending.failed.Load() {
			d.takeBack()
		}
		if d.then != nil {
			d.then()
		}
	}
}

// undone tells whether a decision turned out not to hold.
func (d *decision) failed() bool { return d.pending.failed.Load() }

// takeBack forgets what was counted under the other keys of a decision that does
// not hold.
func (d *decision) takeBack() {
	for i, instant := range d.instants {
		d.limiter.forget(&d.demands[i], instant, d.count)
	}
}

// decide is a decision about a request of this node.
func (l *Limiter) decide(demands []ratelimit.Demand, stands []ratelimit.Standing, asReplica bool) verdict {
	own := l.beginOwn(demands, asReplica)
	v := own.decision.decide(stands)
	if !l.finishOwn(own) {
		v = retry
	}
	return v
}

// local makes a gate for a request of this node; holds waits until what was
// decided holds, or does not, and ends it.
func (l *Limiter) beginOwn(demands []ratelimit.Demand, asReplica bool) *ownDecision {
	own := l.decisions.Get().(*ownDecision)
	d := &own.decision
	d.init(l, l.self, asReplica)
	d.demands = demands
	d.instants, d.numbers = append(own.instants[:0], make([]int64, len(demands))...), append(own.numbers[:0], make([]uint64, len(demands))...)
	return own
}

func (l *Limiter) finishOwn(own *ownDecision) bool {
	own.decision.finish()
	<-own.done
	holds := !own.decision.failed()
	own.decision.demands, own.decision.placement = nil, nil
	l.decisions.Put(own)
	return holds
}

// local is a gate for a request of this node, used again and again.
type ownDecision struct {
	decision
	done     chan struct{} // gets one when the decision holds, or does not
	instants [maxDemands]int64
	numbers  [maxDemands]uint64
}

func newOwnDecision() any {
	own := &ownDecision{done: make(chan struct{}, 1)}
	own.then = func() { own.done <- struct{}{} }
	return own
}

// forget takes back admissions that were counted here as of an instant, and has
// the stand-in do the same.
func (l *Limiter) forget(d *ratelimit.Demand, instant, count int64) {
	p := d.Key.Partition()
	l.table.WithPartition(p, func(part *ratelimit.Partition) {
		w, gone := part.Get(d.Key), int64(0)
		for w != nil && gone < count && w.Forget(instant) {
			gone++
		}
		if gone == 0 {
			return
		}
		pl, r := l.place.Load(), &l.partitions[p]
		r.number++
		if next := pl.replica[p]; pl.owner[p] == l.self && next != "" {
			l.replicate(next, &update{part: p, number: r.number, demand: *d, takenBack: true, count: gone})
		}
	})
}
