package ratelimit

import (
	"hash/maphash"
	"sync"

	"castellan/domain/ratelimit"
)

// A front remembers, for its own requests, what was refused until when, and what
// it has admitted: that is what its share of a limit is reckoned from.
type localLimiter struct {
	mu   sync.Mutex
	keys map[ratelimit.Key]*localKey
	_    [40]byte
}

const localShards = 256

type localKey struct {
	own ratelimit.Window // admissions of this node's requests
	// Until when the key refuses, by the rule of that time; and when its oldest
	// admission leaves.
	until, reset  int64
	limit, period int64
	reservation   reservation
}

var localSeed = maphash.MakeSeed()

func (l *Limiter) localOf(k ratelimit.Key) *localLimiter {
	return &l.localLimiters[maphash.Comparable(localSeed, k)%localShards]
}

// find is the cell of a key; the caller holds the lock.
func (local *localLimiter) find(k ratelimit.Key) *localKey {
	if at := local.keys[k]; at != nil {
		return at
	}
	if local.keys == nil {
		local.keys = map[ratelimit.Key]*localKey{}
	}
	at := new(localKey)
	local.keys[k] = at
	return at
}

// known reports whether a request is refused by what is known here. A refusal is
// exact until its end: a window has no room before, whatever happens. A rule
// that was changed since is asked for anew.
func (l *Limiter) knownRefusal(demands []ratelimit.Demand, stands []ratelimit.Standing) (refuses bool) {
	now := l.table.Instant()
	for i := range demands {
		d, local := &demands[i], l.localOf(demands[i].Key)
		local.mu.Lock()
		at := local.keys[d.Key]
		if at != nil {
			if at.until > now && at.limit == d.Limit && at.period == int64(d.Period) {
				stands[i] = ratelimit.Standing{Used: d.Limit, Reset: max(at.reset-now, 0), Retry: at.until - now}
				refuses = true
			} else {
				stands[i] = at.own.Look(now, quotaOf(d))
				stands[i].Retry = 0
			}
		}
		local.mu.Unlock()
	}
	return refuses
}

// note remembers what was decided.
func (l *Limiter) remember(demands []ratelimit.Demand, stands []ratelimit.Standing, v verdict) {
	now, all := l.table.Instant(), allReservable(demands)
	for i := range demands {
		d, s := &demands[i], stands[i]
		if v == refused && s.Retry <= 0 {
			continue
		}
		local := l.localOf(d.Key)
		local.mu.Lock()
		at := local.find(d.Key)
		if v == admitted {
			at.own.Admit(now, quotaOf(d))
			if all {
				at.reservation.uses++
				l.renewAhead(d, at, now)
			}
		} else {
			at.until, at.reset, at.limit, at.period = now+s.Retry, now+s.Reset, d.Limit, int64(d.Period)
		}
		local.mu.Unlock()
	}
}

// share decides without anybody: at most the limit by the number of nodes, less
// what this node has admitted itself (D-WAF-13).
func (l *Limiter) decideByShare(demands []ratelimit.Demand, stands []ratelimit.Standing) bool {
	members := l.place.Load().shares()
	now := l.table.Instant()
	room := true
	for i := range demands {
		d, local := &demands[i], l.localOf(demands[i].Key)
		r := quotaOf(d)
		r.Limit = (r.Limit + members - 1) / members
		local.mu.Lock()
		if at := local.keys[d.Key]; at == nil {
			stands[i] = ratelimit.Standing{}
		} else {
			stands[i] = at.own.Look(now, r)
		}
		local.mu.Unlock()
		room = room && stands[i].Retry == 0
	}
	for i := range demands {
		if d, local := &demands[i], l.localOf(demands[i].Key); room {
			local.mu.Lock()
			local.find(d.Key).own.Admit(now, quotaOf(d))
			local.mu.Unlock()
			stands[i].Used++
		}
		// What is left is told of the share.
		stands[i].Used += demands[i].Limit - (demands[i].Limit+members-1)/members
	}
	return room
}

// sweep forgets what is of no more use, and returns the leases that have ended.
func (local *localLimiter) sweep(now int64) (ended map[ratelimit.Key]reservation) {
	local.mu.Lock()
	defer local.mu.Unlock()
	for k, at := range local.keys {
		if at.reservation.left > 0 && at.reservation.until <= now {
			if ended == nil {
				ended = map[ratelimit.Key]reservation{}
			}
			ended[k] = at.reservation
			at.reservation.left = 0
		}
		if at.until <= now && at.own.Idle(now) && !at.reservation.asking {
			delete(local.keys, k)
		}
	}
	if len(local.keys) == 0 {
		local.keys = nil
	}
	return ended
}

func quotaOf(d *ratelimit.Demand) ratelimit.Quota {
	return ratelimit.Quota{Limit: d.Limit, Period: int64(d.Period)}
}
