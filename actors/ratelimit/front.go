package ratelimit

import (
	"hash/maphash"
	"sync"

	"castellan/domain/firewall"
	"castellan/domain/window"
)

// A front remembers, for its own requests, what was refused until when, and what
// it has admitted: that is what its share of a limit is reckoned from.
type front struct {
	mu    sync.Mutex
	cells map[firewall.Key]*cell
	_     [40]byte
}

const fronts = 256

type cell struct {
	own window.Window // admissions of this node's requests
	// Until when the key refuses, by the rule of that time; and when its oldest
	// admission leaves.
	until, reset  int64
	limit, period int64
	lease         lease
}

var frontSeed = maphash.MakeSeed()

func (c *Counter) frontOf(k firewall.Key) *front {
	return &c.front[maphash.Comparable(frontSeed, k)%fronts]
}

// find is the cell of a key; the caller holds the lock.
func (f *front) find(k firewall.Key) *cell {
	if at := f.cells[k]; at != nil {
		return at
	}
	if f.cells == nil {
		f.cells = map[firewall.Key]*cell{}
	}
	at := new(cell)
	f.cells[k] = at
	return at
}

// known reports whether a request is refused by what is known here. A refusal is
// exact until its end: a window has no room before, whatever happens. A rule
// that was changed since is asked for anew.
func (c *Counter) known(demands []firewall.Demand, stands []window.Standing) (refuses bool) {
	now := c.table.Instant()
	for i := range demands {
		d, f := &demands[i], c.frontOf(demands[i].Key)
		f.mu.Lock()
		at := f.cells[d.Key]
		if at != nil {
			if at.until > now && at.limit == d.Limit && at.period == int64(d.Period) {
				stands[i] = window.Standing{Used: d.Limit, Reset: max(at.reset-now, 0), Retry: at.until - now}
				refuses = true
			} else {
				stands[i] = at.own.Look(now, ruleOf(d))
				stands[i].Retry = 0
			}
		}
		f.mu.Unlock()
	}
	return refuses
}

// note remembers what was decided.
func (c *Counter) note(demands []firewall.Demand, stands []window.Standing, v verdict) {
	now, all := c.table.Instant(), allLeased(demands)
	for i := range demands {
		d, s := &demands[i], stands[i]
		if v == refused && s.Retry <= 0 {
			continue
		}
		f := c.frontOf(d.Key)
		f.mu.Lock()
		at := f.find(d.Key)
		if v == admitted {
			at.own.Admit(now, ruleOf(d))
			if all {
				at.lease.uses++
				c.lookAhead(d, at, now)
			}
		} else {
			at.until, at.reset, at.limit, at.period = now+s.Retry, now+s.Reset, d.Limit, int64(d.Period)
		}
		f.mu.Unlock()
	}
}

// share decides without anybody: at most the limit by the number of nodes, less
// what this node has admitted itself (D-WAF-13).
func (c *Counter) share(demands []firewall.Demand, stands []window.Standing) bool {
	members := c.place.Load().members()
	now := c.table.Instant()
	room := true
	for i := range demands {
		d, f := &demands[i], c.frontOf(demands[i].Key)
		r := ruleOf(d)
		r.Limit = (r.Limit + members - 1) / members
		f.mu.Lock()
		if at := f.cells[d.Key]; at == nil {
			stands[i] = window.Standing{}
		} else {
			stands[i] = at.own.Look(now, r)
		}
		f.mu.Unlock()
		room = room && stands[i].Retry == 0
	}
	for i := range demands {
		if d, f := &demands[i], c.frontOf(demands[i].Key); room {
			f.mu.Lock()
			f.find(d.Key).own.Admit(now, ruleOf(d))
			f.mu.Unlock()
			stands[i].Used++
		}
		// What is left is told of the share.
		stands[i].Used += demands[i].Limit - (demands[i].Limit+members-1)/members
	}
	return room
}

// sweep forgets what is of no more use, and returns the leases that have ended.
func (f *front) sweep(now int64) (ended map[firewall.Key]lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, at := range f.cells {
		if at.lease.left > 0 && at.lease.until <= now {
			if ended == nil {
				ended = map[firewall.Key]lease{}
			}
			ended[k] = at.lease
			at.lease.left = 0
		}
		if at.until <= now && at.own.Idle(now) && !at.lease.asking {
			delete(f.cells, k)
		}
	}
	if len(f.cells) == 0 {
		f.cells = nil
	}
	return ended
}

func ruleOf(d *firewall.Demand) window.Rule {
	return window.Rule{Limit: d.Limit, Period: int64(d.Period)}
}
