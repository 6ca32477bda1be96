package ratelimit

import (
	"sync/atomic"

	"castellan/domain/firewall"
	"castellan/domain/window"
)

// gate is one decision of this node: it lets it be made only where this node may,
// and has the stand-ins know of it before anybody hears of it.
type gate struct {
	c        *Counter
	pl       *placement
	asker    string // whose request it is
	standIn  bool   // in the place of a silent owner
	demands  []firewall.Demand
	instants []int64  // what each demand was counted as, by the clock here
	numbers  []uint64 // and as which of its partition, where the asker stands in
	count    int64    // how many each demand counted
	ahead    int64    // as of so much later
	late     []int    // partitions that are still to be taken over
	wait     wait
	then     func() // called when the decision holds, or does not
}

// wait counts the copies that are not confirmed yet.
type wait struct {
	left atomic.Int32
	void atomic.Bool // a stand-in has decided for itself: the decision does not hold
}

var _ firewall.Gate = (*gate)(nil)

func (g *gate) init(c *Counter, asker string, standIn bool) {
	g.c, g.pl, g.asker, g.standIn = c, c.place.Load(), asker, standIn
	g.late, g.count, g.ahead = g.late[:0], 0, 0
	g.wait.left.Store(1)
	g.wait.void.Store(false)
}

// Open implements firewall.Gate.
func (g *gate) Open(p int) bool {
	c := g.c
	pl, r := g.pl, &c.roles[p]
	switch {
	case pl != c.place.Load() || !c.net.Belongs():
		return false
	case pl.owner[p] == c.self:
		if r.state != held {
			g.late = append(g.late, p)
			return false
		}
		return true
	case g.standIn && pl.next[p] == c.self && r.whole && r.state == idle:
		if !r.stands {
			r.stands = true
			r.number = (r.number>>term + 1) << term
		}
		return true
	}
	return false
}

// Counted implements firewall.Gate.
func (g *gate) Counted(i, p int, instant, count int64) {
	c := g.c
	pl, r := g.pl, &c.roles[p]
	r.number++
	g.instants[i], g.count = instant, count
	if pl.owner[p] != c.self { // the stand-in has none itself
		c.stood.Add(1)
		return
	}
	switch next := pl.next[p]; next {
	case "":
	case g.asker: // it is told by the answer
		g.numbers[i] = r.number
	default:
		x := &copied{part: p, number: r.number, demand: g.demands[i], count: count, ahead: g.ahead}
		if c.way(next).deaf.Load() {
			r.owe(x)
		} else {
			g.wait.left.Add(1)
			x.gate = g
		}
		c.copyTo(next, x)
	}
}

// decide decides; what it counts holds once finish has come to an end.
func (g *gate) decide(stands []window.Standing) verdict {
	ok, open := g.c.table.Decide(g.demands, stands, g)
	switch {
	case !open:
		for _, p := range g.late {
			g.c.activateSoon(p)
		}
		return again
	case !ok:
		return refused
	}
	return admitted
}

// finish notes that one thing less is waited for.
func (g *gate) finish() {
	if g.wait.left.Add(-1) == 0 {
		if g.wait.void.Load() {
			g.takeBack()
		}
		if g.then != nil {
			g.then()
		}
	}
}

// undone tells whether a decision turned out not to hold.
func (g *gate) undone() bool { return g.wait.void.Load() }

// takeBack forgets what was counted under the other keys of a decision that does
// not hold.
func (g *gate) takeBack() {
	for i, instant := range g.instants {
		g.c.forget(&g.demands[i], instant, g.count)
	}
}

// decide is a decision about a request of this node.
func (c *Counter) decide(demands []firewall.Demand, stands []window.Standing, standIn bool) verdict {
	l := c.local(demands, standIn)
	v := l.gate.decide(stands)
	if !c.holds(l) {
		v = again
	}
	return v
}

// local makes a gate for a request of this node; holds waits until what was
// decided holds, or does not, and ends it.
func (c *Counter) local(demands []firewall.Demand, standIn bool) *local {
	l := c.locals.Get().(*local)
	g := &l.gate
	g.init(c, c.self, standIn)
	g.demands = demands
	g.instants, g.numbers = append(l.instants[:0], make([]int64, len(demands))...), append(l.numbers[:0], make([]uint64, len(demands))...)
	return l
}

func (c *Counter) holds(l *local) bool {
	l.gate.finish()
	<-l.done
	holds := !l.gate.undone()
	l.gate.demands, l.gate.pl = nil, nil
	c.locals.Put(l)
	return holds
}

// local is a gate for a request of this node, used again and again.
type local struct {
	gate
	done     chan struct{} // gets one when the decision holds, or does not
	instants [maxDemands]int64
	numbers  [maxDemands]uint64
}

func newLocal() any {
	l := &local{done: make(chan struct{}, 1)}
	l.then = func() { l.done <- struct{}{} }
	return l
}

// forget takes back admissions that were counted here as of an instant, and has
// the stand-in do the same.
func (c *Counter) forget(d *firewall.Demand, instant, count int64) {
	p := d.Key.Partition()
	c.table.Enter(p, func(part *firewall.Part) {
		w, gone := part.Find(d.Key), int64(0)
		for w != nil && gone < count && w.Forget(instant) {
			gone++
		}
		if gone == 0 {
			return
		}
		pl, r := c.place.Load(), &c.roles[p]
		r.number++
		if next := pl.next[p]; pl.owner[p] == c.self && next != "" {
			c.copyTo(next, &copied{part: p, number: r.number, demand: *d, taken: true, count: gone})
		}
	})
}
