package ratelimit

import (
	"slices"
	"time"

	"castellan/domain/guard/ratelimit"
)

// asking is the state of a request that is retried, under the same names, until it is decided.
type asking struct {
	ids []uint64
	may [2 * maxDemands]string // the n members that may have counted it
	n   int

	again bool // this is a retry
}

// name returns names for the admissions of a request. A node without other members needs none.
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

// counted records that a member may have counted the request.
func (a *asking) counted(member string) {
	if a.n < len(a.may) && !slices.Contains(a.may[:a.n], member) {
		a.may[a.n] = member
		a.n++
	}
}

// takeBackAll takes the request back from every member that may have counted it, and from those that may have taken
// over its partitions.
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

// allSilent reports whether, for some demand, every member that may decide is silent.
func (l *Limiter) allSilent(demands []ratelimit.Demand, waited time.Duration) bool {
	pl := l.place.Load()
	for i := range demands {
		p := demands[i].Key.Partition()
		owner, replica := pl.owner[p], pl.replica[p]
		if waited < leastPatience && (l.isLost(owner) || l.isLost(replica)) {
			continue // other members may answer soon
		}
		switch {
		case owner == l.self: // it goes on without its replica if another node is available
			if others := without(pl.members, owner); len(others) > 0 && !slices.ContainsFunc(others, l.responds) {
				return true
			}
		case l.silent(owner) && (replica == l.self || l.silent(replica)):
			return true
		}
	}
	return false
}

func (l *Limiter) responds(id string) bool { return !l.silent(id) }

// without returns the members except one.
func without(members []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == id })
}

func (l *Limiter) isLost(id string) bool { return id == "" || id != l.self && l.net.Lost(id) }
