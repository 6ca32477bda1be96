package ratelimit

import (
	"time"

	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// A busy key does not need a query for each request. A node may have the owner count some requests in advance: a token
// reservation. They count at the instant at which the reservation ends, and are admitted before it. So each leaves its
// window later than it otherwise would, and a limit is never exceeded. The price: a place in the window comes back
// later, by reservationTime at most, and unused places are missing for that long. Therefore only large limits with room
// are reserved from, and unused places are given back. docs/decisions/0004-replication-of-the-limiter.md has the gain.

const (
	// reservationTime is how long a reservation lasts. A period must have reservationsInPeriod of them.
	reservationTime      = shard.ReservationTime
	reservationsInPeriod = 50
	// minReservableLimit is the smallest limit with reservations, in requests.
	minReservableLimit = 1000
	// minReservation is how many requests must arrive in reservationTime to be worth a reservation, and maxReservation
	// is the largest one.
	minReservation = 8
	maxReservation = 4096
	// reservableShare: a reservation takes at most the room of a key divided by this
	// and by the number of nodes.
	reservableShare = 8
)

// reservation is the number of requests that this node may admit without a query.
type reservation struct {
	left     int64
	until    int64  // by this node's clock, read before the owner was asked
	from     string // the owner
	id       uint64 // the name under which the owner has counted them
	standing ratelimit.Standing
	// uses are the requests since the instant since: the demand, which determines the size of the next reservation.
	// asking: a query to the owner is under way.
	uses, since int64
	asking      bool
}

// reservable reports whether the owner counts requests under a demand in advance.
func reservable(d *ratelimit.Demand) bool {
	return d.Limit >= minReservableLimit && d.Period >= reservationsInPeriod*reservationTime
}

// allReservable reports whether reservations alone can admit a request.
func allReservable(demands []ratelimit.Demand) bool {
	for i := range demands {
		if !reservable(&demands[i]) {
			return false
		}
	}
	return true
}

// spendReserved admits a request if all its keys have a reservation.
func (rs *reservations) spendReserved(demands []ratelimit.Demand, standings []ratelimit.Standing) bool {
	if !allReservable(demands) {
		return false
	}
	now := rs.table.Instant()
	for i := range demands {
		d, local := &demands[i], rs.localOf(demands[i].Key)
		local.mu.Lock()
		at := local.keys.Get(d.Key)
		ok := at != nil && at.reservation.left > 0 && now < at.reservation.until &&
			at.limit == d.Limit && at.period == int64(d.Period)
		if ok {
			r := &at.reservation
			r.left--
			r.uses++
			standings[i] = r.standing
			standings[i].Used -= r.left
			at.own.Admit(now, d.Quota())
			rs.renewAhead(d, at, now)
		}
		local.mu.Unlock()
		if !ok {
			for k := range i { // the owners decide instead
				rs.returnSpent(&demands[k])
			}
			return false
		}
	}
	rs.reserved.Add(1)
	return true
}

// returnSpent undoes one use of a reservation.
func (rs *reservations) returnSpent(d *ratelimit.Demand) {
	local := rs.localOf(d.Key)
	local.mu.Lock()
	defer local.mu.Unlock()
	if at := local.keys.Get(d.Key); at != nil {
		at.reservation.left++
		at.own.ForgetNewest()
	}
}

// renewAhead requests the next reservation from the owner when the demand will use up the present one. The caller holds
// the lock of the key.
func (rs *reservations) renewAhead(d *ratelimit.Demand, at *localKey, now int64) {
	r := &at.reservation
	if at.limit != d.Limit || at.period != int64(d.Period) { // the rule has changed
		rs.giveBack(ratelimit.Demand{Key: d.Key, Limit: at.limit, Period: time.Duration(at.period)}, *r)
		r.left, at.until, at.limit, at.period = 0, 0, d.Limit, int64(d.Period)
	}
	if r.left > 0 && now >= r.until && !r.asking {
		rs.giveBack(*d, *r)
		r.left = 0
	}
	if r.since == 0 || now-r.since > 2*int64(reservationTime) {
		r.uses, r.since = 1, now
		return
	}
	span := now - r.since
	if span < int64(reservationTime)/4 || r.asking || rs.ctx.Err() != nil {
		return
	}
	rate := r.uses * int64(reservationTime) / span // in a reservationTime
	if rate < minReservation || now < r.until-int64(reservationTime)/3 && r.left > rate/3 {
		return
	}
	r.uses, r.since, r.asking = 1, now, true
	demand, want := *d, min(rate+rate/4, maxReservation)
	rs.inBackground(func() { rs.reserve(demand, want) })
}

// reserve requests a reservation and replaces the present one with it.
func (rs *reservations) reserve(d ratelimit.Demand, want int64) {
	begin := rs.table.Instant()
	next := reservation{until: begin + int64(reservationTime)}
	t := rs.decider.target(rs.place.Load(), d.Key.Partition())
	demands, ids := []ratelimit.Demand{d}, []uint64{max(1, rs.decider.names.Add(1))}
	next.id = ids[0]
	switch {
	case t.member == "" || t.replica: // a replica reserves nothing
	case t.member == rs.self:
		own := rs.decider.beginOwn(demands, ids, false)
		own.decision.Standings = []ratelimit.Standing{{}}
		given := rs.grant(&own.decision, want)
		next.standing = own.decision.Standings[0]
		if rs.decider.finishOwn(own) {
			next.left, next.from = given, rs.self
		} else {
			rs.decider.takeBack(rs.self, maxReservation, ids, d)
		}
	default:
		q := rs.decider.query(t, modeReserve, want, ids, d)
		if <-q.done && q.verdict == admitted && q.count > 0 {
			next.left, next.from, next.standing = q.count, t.member, q.standings[0]
		} else if q.verdict != refused { // it may have counted them
			rs.decider.takeBack(t.member, maxReservation, ids, d)
		}
		rs.decider.queries.Put(q)
	}
	local := rs.localOf(d.Key)
	local.mu.Lock()
	at := local.key(d.Key)
	old := at.reservation
	if next.left > 0 {
		next.uses, next.since = old.uses, old.since
		at.reservation = next
		if !at.listed {
			at.listed, local.reserved = true, append(local.reserved, d.Key)
		}
	} else { // the owner granted none: the old one stays
		at.reservation.asking = false
		old.left = 0
	}
	local.mu.Unlock()
	rs.giveBack(d, old)
}

// grant counts requests in advance, as the owner. It returns how many.
func (rs *reservations) grant(d *decision, want int64) int64 {
	demand := &d.Demands[0]
	if !reservable(demand) {
		return 0
	}
	d.Ahead = int64(reservationTime)
	d.Hashes = append(d.Hashes[:0], demand.Key.Hash())
	at := [...]int{ratelimit.PartitionOf(d.Hashes[0])}
	m := &shard.Reserve{Decide: &d.Decide, Most: want, Share: reservableShare * d.placement.shares()}
	rs.table.WithPartition(at[0], func(*ratelimit.Partition) {
		d.locate(at[:])
		rs.stepLocked(at[0], m)
	})
	d.takeOverSoon()
	return m.Given
}

// giveBack returns the unused places of a reservation to the owner.
func (rs *reservations) giveBack(d ratelimit.Demand, r reservation) {
	if r.left > 0 {
		rs.decider.takeBack(r.from, r.left, []uint64{r.id}, d)
	}
}
