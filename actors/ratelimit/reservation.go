package ratelimit

import (
	"time"

	"castellan/domain/ratelimit"
)

// A key that is asked for all the time need not be asked for one by one. Its
// front may have the owner count some requests beforehand, as of the instant at
// which the lease ends: whenever they are let in until then, they leave the
// window later than they would have, so a limit is never exceeded. What is lost
// is that they do, by leaseTime at most, and what is not used; so only large
// limits with room are leased, and what is left over is given back.

const (
	// leaseTime is how long a lease lasts; a period must have so many of them.
	reservationTime      = 100 * time.Millisecond
	reservationsInPeriod = 50
	// leaseLimit is the least limit that is leased, and leaseMin the least number
	// of requests in a leaseTime for which it is worth it.
	minReservableLimit = 1000
	minReservation     = 8
	maxReservation     = 4096
	// leaseRoom: of what a key has left, a lease gets at most this part, divided by
	// the number of nodes.
	reservableShare = 8
)

// lease is what a front may let in without asking.
type reservation struct {
	left    int64
	until   int64 // by this node's clock, from before the owner was asked
	from    string
	instant int64 // as which the owner counts them
	stand   ratelimit.Standing
	// How many requests came since the last look at that, and whether the owner is
	// being asked.
	uses, since int64
	asking      bool
}

func reservable(d *ratelimit.Demand) bool {
	return d.Limit >= minReservableLimit && d.Period >= reservationsInPeriod*reservationTime
}

// allLeased tells whether a request could do with leases alone.
func allReservable(demands []ratelimit.Demand) bool {
	for i := range demands {
		if !reservable(&demands[i]) {
			return false
		}
	}
	return true
}

// spend lets a request in by what was leased for all its keys.
func (l *Limiter) spendReserved(demands []ratelimit.Demand, stands []ratelimit.Standing) bool {
	if !allReservable(demands) {
		return false
	}
	now := l.table.Instant()
	for i := range demands {
		d, local := &demands[i], l.localOf(demands[i].Key)
		local.mu.Lock()
		at := local.keys[d.Key]
		ok := at != nil && at.reservation.left > 0 && now < at.reservation.until && at.limit == d.Limit && at.period == int64(d.Period)
		if ok {
			r := &at.reservation
			r.left--
			r.uses++
			stands[i] = r.stand
			stands[i].Used -= r.left
			at.own.Admit(now, quotaOf(d))
			l.renewAhead(d, at, now)
		}
		local.mu.Unlock()
		if !ok {
			for k := range i { // it is asked for in the other way
				l.returnSpent(&demands[k])
			}
			return false
		}
	}
	l.reserved.Add(1)
	return true
}

func (l *Limiter) returnSpent(d *ratelimit.Demand) {
	local := l.localOf(d.Key)
	local.mu.Lock()
	defer local.mu.Unlock()
	if at := local.keys[d.Key]; at != nil {
		at.reservation.left++
		at.own.ForgetNewest()
	}
}

// lookAhead has the owner asked for a lease when the key is in so much demand
// that the one there is will be used up. The caller holds the lock of the cell.
func (l *Limiter) renewAhead(d *ratelimit.Demand, at *localKey, now int64) {
	r := &at.reservation
	if at.limit != d.Limit || at.period != int64(d.Period) { // the rule was changed
		l.giveBack(ratelimit.Demand{Key: d.Key, Limit: at.limit, Period: time.Duration(at.period)}, *r)
		r.left, at.until, at.limit, at.period = 0, 0, d.Limit, int64(d.Period)
	}
	if r.left > 0 && now >= r.until && !r.asking {
		l.giveBack(*d, *r)
		r.left = 0
	}
	if r.since == 0 || now-r.since > 2*int64(reservationTime) {
		r.uses, r.since = 1, now
		return
	}
	span := now - r.since
	if span < int64(reservationTime)/4 || r.asking || l.ctx.Err() != nil {
		return
	}
	rate := r.uses * int64(reservationTime) / span // in a leaseTime
	if rate < minReservation || now < r.until-int64(reservationTime)/3 && r.left > rate/3 {
		return
	}
	r.uses, r.since, r.asking = 1, now, true
	demand, want := *d, min(rate+rate/4, maxReservation)
	l.inBackground(func() { l.reserve(demand, want) })
}

// hire asks for a lease.
func (l *Limiter) reserve(d ratelimit.Demand, want int64) {
	begin := l.table.Instant()
	next := reservation{until: begin + int64(reservationTime)}
	t := l.target(l.place.Load(), d.Key.Partition(), false)
	demands := []ratelimit.Demand{d}
	switch {
	case t.member == "" || t.replica: // one that stands in counts one by one
	case t.member == l.self:
		own := l.beginOwn(demands, false)
		given := l.grant(&own.decision, want, &next.stand)
		instant := own.decision.instants[0]
		if l.finishOwn(own) {
			next.left, next.from, next.instant = given, l.self, instant
		}
	default:
		q := l.query(t, modeReserve, want, d)
		if <-q.done && q.verdict == admitted && q.count > 0 {
			next.left, next.from, next.instant, next.stand = q.count, t.member, q.instants[0], q.stands[0]
		}
		l.queries.Put(q)
	}
	local := l.localOf(d.Key)
	local.mu.Lock()
	at := local.find(d.Key)
	old := at.reservation
	next.uses, next.since = old.uses, old.since
	if next.left == 0 {
		next.left, next.until, next.from, next.instant, next.stand = old.left, old.until, old.from, old.instant, old.stand
		old.left = 0
	}
	at.reservation = next
	local.mu.Unlock()
	l.giveBack(d, old)
}

// give counts requests beforehand, as the owner.
func (l *Limiter) grant(dec *decision, want int64, stand *ratelimit.Standing) int64 {
	d := &dec.demands[0]
	if !reservable(d) {
		return 0
	}
	dec.ahead = int64(reservationTime)
	n, open := l.table.Reserve(d, want, reservableShare*dec.placement.shares(), int64(reservationTime), stand, dec)
	if !open {
		for _, p := range dec.notOwned {
			l.takeOverSoon(p)
		}
	}
	return n
}

// giveBack gives back what is left of a lease.
func (l *Limiter) giveBack(d ratelimit.Demand, r reservation) {
	switch {
	case r.left <= 0:
	case r.from == l.self:
		l.forget(&d, r.instant, r.left)
	default:
		q := l.prepare(target{member: r.from}, modeTakeBack, r.left, []ratelimit.Demand{d})
		q.instants = append(q.instants, r.instant)
		l.takeBack(q)
	}
}
