package ratelimit

import (
	"time"

	"castellan/domain/firewall"
	"castellan/domain/window"
)

// A key that is asked for all the time need not be asked for one by one. Its
// front may have the owner count some requests beforehand, as of the instant at
// which the lease ends: whenever they are let in until then, they leave the
// window later than they would have, so a limit is never exceeded. What is lost
// is that they do, by leaseTime at most, and what is not used; so only large
// limits with room are leased, and what is left over is given back.

const (
	// leaseTime is how long a lease lasts; a period must have so many of them.
	leaseTime    = 100 * time.Millisecond
	leasePeriods = 50
	// leaseLimit is the least limit that is leased, and leaseMin the least number
	// of requests in a leaseTime for which it is worth it.
	leaseLimit = 1000
	leaseMin   = 8
	maxLease   = 4096
	// leaseRoom: of what a key has left, a lease gets at most this part, divided by
	// the number of nodes.
	leaseRoom = 8
)

// lease is what a front may let in without asking.
type lease struct {
	left    int64
	until   int64 // by this node's clock, from before the owner was asked
	from    string
	instant int64 // as which the owner counts them
	stand   window.Standing
	// How many requests came since the last look at that, and whether the owner is
	// being asked.
	uses, since int64
	asking      bool
}

func leased(d *firewall.Demand) bool {
	return d.Limit >= leaseLimit && d.Period >= leasePeriods*leaseTime
}

// allLeased tells whether a request could do with leases alone.
func allLeased(demands []firewall.Demand) bool {
	for i := range demands {
		if !leased(&demands[i]) {
			return false
		}
	}
	return true
}

// spend lets a request in by what was leased for all its keys.
func (c *Counter) spend(demands []firewall.Demand, stands []window.Standing) bool {
	if !allLeased(demands) {
		return false
	}
	now := c.table.Instant()
	for i := range demands {
		d, f := &demands[i], c.frontOf(demands[i].Key)
		f.mu.Lock()
		at := f.cells[d.Key]
		ok := at != nil && at.lease.left > 0 && now < at.lease.until && at.limit == d.Limit && at.period == int64(d.Period)
		if ok {
			l := &at.lease
			l.left--
			l.uses++
			stands[i] = l.stand
			stands[i].Used -= l.left
			at.own.Admit(now, ruleOf(d))
			c.lookAhead(d, at, now)
		}
		f.mu.Unlock()
		if !ok {
			for k := range i { // it is asked for in the other way
				c.unspend(&demands[k])
			}
			return false
		}
	}
	c.spent.Add(1)
	return true
}

func (c *Counter) unspend(d *firewall.Demand) {
	f := c.frontOf(d.Key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.cells[d.Key]; at != nil {
		at.lease.left++
		at.own.ForgetNewest()
	}
}

// lookAhead has the owner asked for a lease when the key is in so much demand
// that the one there is will be used up. The caller holds the lock of the cell.
func (c *Counter) lookAhead(d *firewall.Demand, at *cell, now int64) {
	l := &at.lease
	if at.limit != d.Limit || at.period != int64(d.Period) { // the rule was changed
		c.giveBack(firewall.Demand{Key: d.Key, Limit: at.limit, Period: time.Duration(at.period)}, *l)
		l.left, at.until, at.limit, at.period = 0, 0, d.Limit, int64(d.Period)
	}
	if l.left > 0 && now >= l.until && !l.asking {
		c.giveBack(*d, *l)
		l.left = 0
	}
	if l.since == 0 || now-l.since > 2*int64(leaseTime) {
		l.uses, l.since = 1, now
		return
	}
	span := now - l.since
	if span < int64(leaseTime)/4 || l.asking || c.ctx.Err() != nil {
		return
	}
	rate := l.uses * int64(leaseTime) / span // in a leaseTime
	if rate < leaseMin || now < l.until-int64(leaseTime)/3 && l.left > rate/3 {
		return
	}
	l.uses, l.since, l.asking = 1, now, true
	demand, want := *d, min(rate+rate/4, maxLease)
	c.aside(func() { c.hire(demand, want) })
}

// hire asks for a lease.
func (c *Counter) hire(d firewall.Demand, want int64) {
	begin := c.table.Instant()
	next := lease{until: begin + int64(leaseTime)}
	t := c.target(c.place.Load(), d.Key.Partition(), false)
	demands := []firewall.Demand{d}
	switch {
	case t.member == "" || t.standIn: // one that stands in counts one by one
	case t.member == c.self:
		l := c.local(demands, false)
		given := c.give(&l.gate, want, &next.stand)
		instant := l.gate.instants[0]
		if c.holds(l) {
			next.left, next.from, next.instant = given, c.self, instant
		}
	default:
		q := c.ask(t, modeLease, want, d)
		if <-q.done && q.verdict == admitted && q.count > 0 {
			next.left, next.from, next.instant, next.stand = q.count, t.member, q.instants[0], q.stands[0]
		}
		c.unused.Put(q)
	}
	f := c.frontOf(d.Key)
	f.mu.Lock()
	at := f.find(d.Key)
	old := at.lease
	next.uses, next.since = old.uses, old.since
	if next.left == 0 {
		next.left, next.until, next.from, next.instant, next.stand = old.left, old.until, old.from, old.instant, old.stand
		old.left = 0
	}
	at.lease = next
	f.mu.Unlock()
	c.giveBack(d, old)
}

// give counts requests beforehand, as the owner.
func (c *Counter) give(g *gate, want int64, stand *window.Standing) int64 {
	d := &g.demands[0]
	if !leased(d) {
		return 0
	}
	g.ahead = int64(leaseTime)
	n, open := c.table.Book(d, want, leaseRoom*g.pl.members(), int64(leaseTime), stand, g)
	if !open {
		for _, p := range g.late {
			c.activateSoon(p)
		}
	}
	return n
}

// giveBack gives back what is left of a lease.
func (c *Counter) giveBack(d firewall.Demand, l lease) {
	switch {
	case l.left <= 0:
	case l.from == c.self:
		c.forget(&d, l.instant, l.left)
	default:
		q := c.prepare(target{member: l.from}, modeTakeBack, l.left, []firewall.Demand{d})
		q.instants = append(q.instants, l.instant)
		c.takeBack(q)
	}
}
