package ratelimit

import (
	"slices"
	"sync"
	"time"

	"castellan/domain/guard/ratelimit"
)

// localLimiter holds this node's knowledge about its own requests: refusals until they expire, reservations and
// admissions. The admissions determine its share of a limit when no other node answers. It is one of localShards.
type localLimiter struct {
	mu       sync.Mutex
	keys     ratelimit.KeyMap[localKey]
	reserved []ratelimit.Key // keys that had a reservation at the last sweep, or have got one since
	kept     *ratelimit.Tally
}

const localShards = 256

type localKey struct {
	own ratelimit.Window // admissions of this node's requests
	// The key is refused until this instant, under the quota below; reset is when its oldest admission leaves the
	// window.
	until, reset  int64
	refusedAt     int64 // when its owner last said so
	limit, period int64
	reservation   reservation
	listed        bool // among the reserved keys
}

// deadline returns when the entry of a key is visited next; not after now: it is not needed any more.
func (at *localKey) deadline(now int64) int64 {
	deadline := max(at.until, at.own.Deadline())
	if at.reservation.asking || at.listed {
		deadline = max(deadline, now+1)
	}
	return deadline
}

func (rs *reservations) localOf(k ratelimit.Key) *localLimiter {
	return &rs.localLimiters[k.Hash()%localShards]
}

// key returns the entry of a key; the caller holds the lock.
func (local *localLimiter) key(k ratelimit.Key) *localKey {
	if at := local.keys.Get(k); at != nil {
		return at
	}
	local.kept.Add(k, 1)
	return local.keys.Add(k, 0) // the next sweep learns the deadline
}

// roomFor reports whether the entry of a key can be stored; the caller holds the lock. Without an entry the owner is
// asked each time, and a share of the limit ignores the earlier use of the key.
func (local *localLimiter) roomFor(k ratelimit.Key) bool {
	return local.keys.Get(k) != nil || !local.kept.Full(k)
}

// refusalTime is how long a refusal is cached. A full window has room before its time only when an admission is taken
// back.
const refusalTime = time.Second

// knownRefusal reports whether a cached refusal applies to a request. After a change of the quota the owner is asked
// again.
func (rs *reservations) knownRefusal(demands []ratelimit.Demand, standings []ratelimit.Standing,
	now int64) (refuses bool) {
	for i := range demands {
		d, hash := &demands[i], demands[i].Key.Hash()
		local := &rs.localLimiters[hash%localShards]
		local.mu.Lock()
		at := local.keys.Find(&d.Key, hash)
		if at != nil {
			if at.refuses(d, now) && now < at.refusedAt+int64(refusalTime) {
				standings[i] = ratelimit.Standing{Used: d.Limit, Reset: max(at.reset-now, 0), Retry: at.until - now}
				refuses = true
			} else {
				standings[i] = at.own.Look(now, d.Quota())
				standings[i].Retry = 0
			}
		}
		local.mu.Unlock()
	}
	return refuses
}

// refuses reports whether the owner has refused the key until later than now.
func (at *localKey) refuses(d *ratelimit.Demand, now int64) bool {
	return at.until > now && at.limit == d.Limit && at.period == int64(d.Period)
}

// remember stores the decision about a request.
func (rs *reservations) remember(demands []ratelimit.Demand, standings []ratelimit.Standing, v verdict, now int64) {
	all := allReservable(demands)
	for i := range demands {
		d, s := &demands[i], standings[i]
		if v == refused && s.Retry <= 0 {
			continue
		}
		hash := d.Key.Hash()
		local := &rs.localLimiters[hash%localShards]
		local.mu.Lock()
		at := local.keys.Find(&d.Key, hash)
		if at == nil && local.kept.Full(d.Key) {
			local.mu.Unlock()
			continue
		}
		if at == nil {
			at = local.key(d.Key)
		}
		if v == admitted {
			at.own.Admit(now, d.Quota())
			if at.refuses(d, now) { // an admission of that time was taken back
				at.until = 0
			}
			if all {
				at.reservation.uses++
				rs.renewAhead(d, at, now)
			}
		} else {
			at.until, at.reset, at.limit, at.period = now+s.Retry, now+s.Reset, d.Limit, int64(d.Period)
			at.refusedAt = now
		}
		local.mu.Unlock()
	}
}

// decideByShare decides without any other node. It admits at most the limit divided by the number of nodes, less this
// node's own admissions. It refuses what an owner has refused, until the refusal expires (D-WAF-13). A key for which
// there is no room shares a wider one.
func (rs *reservations) decideByShare(demands []ratelimit.Demand, standings []ratelimit.Standing) bool {
	shares := rs.place.Load().shares()
	now := rs.table.Instant()
	admits := true
	for i := range demands {
		d, local := &demands[i], rs.localOf(demands[i].Key)
		q := d.Quota()
		q.Limit = (q.Limit + shares - 1) / shares
		local.mu.Lock()
		if at := local.keys.Get(d.Key); at == nil {
			standings[i] = ratelimit.Standing{}
			if !local.roomFor(d.Key) {
				standings[i].Sharing = ratelimit.Instead
			}
		} else {
			standings[i] = at.own.Look(now, q)
			if at.refuses(d, now) {
				standings[i].Retry = at.until - now
			}
		}
		local.mu.Unlock()
		admits = admits && standings[i].Retry == 0 && standings[i].Sharing == ratelimit.Alone
	}
	for i := range demands {
		if d, local := &demands[i], rs.localOf(demands[i].Key); admits {
			local.mu.Lock()
			local.key(d.Key).own.Admit(now, d.Quota())
			local.mu.Unlock()
			standings[i].Used++
		}
		// The client receives the rest of the share.
		standings[i].Used += demands[i].Limit - (demands[i].Limit+shares-1)/shares
	}
	return admits
}

// sweep removes expired entries and returns the ended reservations with unused places.
func (local *localLimiter) sweep(now int64) (ended map[ratelimit.Key]reservation) {
	next := func(k ratelimit.Key, at *localKey) int64 {
		deadline := at.deadline(now)
		if deadline <= now {
			local.kept.Add(k, -1)
		}
		return deadline
	}
	for more := true; more; {
		local.mu.Lock()
		local.reserved = slices.DeleteFunc(local.reserved, func(k ratelimit.Key) bool {
			at := local.keys.Get(k)
			switch r := &at.reservation; {
			case r.left > 0 && r.until > now:
				return false
			case r.left > 0:
				if ended == nil {
					ended = map[ratelimit.Key]reservation{}
				}
				ended[k] = *r
				r.left = 0
			}
			at.listed = false
			return true
		})
		more = local.keys.Expire(now, ratelimit.SweepSteps, next)
		local.mu.Unlock()
	}
	return ended
}
