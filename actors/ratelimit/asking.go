package ratelimit

import (
	"slices"
	"time"

	"castellan/domain/guard/ratelimit"
)

// asking is a request that is asked for until it is decided, by the same names.
type asking struct {
	ids []uint64
	may [2 * maxDemands]string // the n members that may have counted it
	n   int

	again bool // it was asked for before
}

// name makes names for the admissions of a request. A node that is alone needs none.
func (l *Limiter) name(ids []uint64, n int) []uint64 {
	last := uint64(0)
	if !l.place.Load().alone {
		last = l.names.Add(uint64(n))
	}
	for i := range uint64(n) {
		id := uint64(0)
		if last != 0 {
			id = max(1, last-i)
		}
		ids = append(ids, id)
	}
	return ids
}

// counted notes that a member may have counted the request.
func (a *asking) counted(member string) {
	if a.n < len(a.may) && !slices.Contains(a.may[:a.n], member) {
		a.may[a.n] = member
		a.n++
	}
}

// takeBackAll has everybody forget the request who may have counted it, and those who
// may have taken that over.
func (l *Limiter) takeBackAll(a *asking, demands []ratelimit.Demand) {
	if a.n == 0 || a.ids[0] == 0 {
		return
	}
	pl := l.place.Load()
	for i := range demands {
		p := demands[i].Key.Partition()
		for _, id := range [...]string{pl.owner[p], pl.replica[p]} {
			if id != "" {
				a.counted(id)
			}
		}
	}
	for _, id := range a.may[:a.n] {
		l.takeBack(id, 1, a.ids, demands...)
	}
}

// allSilent reports whether nobody is there who may decide about some demand.
func (l *Limiter) allSilent(demands []ratelimit.Demand, waited time.Duration) bool {
	pl := l.place.Load()
	for i := range demands {
		p := demands[i].Key.Partition()
		owner, replica := pl.owner[p], pl.replica[p]
		if waited < leastPatience && (l.isLost(owner) || l.isLost(replica)) {
			continue // others may know better in a moment
		}
		switch {
		case owner == l.self: // it goes on without its replica as long as another node is there
			if others := without(pl.members, owner); len(others) > 0 && !slices.ContainsFunc(others, l.speaks) {
				return true
			}
		case l.silent(owner) && (replica == l.self || l.silent(replica)):
			return true
		}
	}
	return false
}

func (l *Limiter) speaks(id string) bool { return !l.silent(id) }

// without is the members but one.
func without(members []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == id })
}

func (l *Limiter) isLost(id string) bool { return id == "" || id != l.self && l.net.Lost(id) }
