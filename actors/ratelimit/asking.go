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
func (dr *decider) name(ids []uint64, n int) []uint64 {
	last := uint64(0)
	if !dr.place.Load().alone {
		last = dr.names.Add(uint64(n))
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
func (dr *decider) takeBackAll(a *asking, demands []ratelimit.Demand) {
	if a.n == 0 || a.ids[0] == 0 {
		return
	}
	pl := dr.place.Load()
	for i := range demands {
		p := demands[i].Key.Partition()
		for _, id := range [...]string{pl.owner[p], pl.replica[p]} {
			if id != "" {
				a.counted(id)
			}
		}
	}
	for _, id := range a.may[:a.n] {
		dr.takeBack(id, 1, a.ids, demands...)
	}
}

// allSilent reports whether, for some demand, every member that may decide is silent.
func (dr *decider) allSilent(demands []ratelimit.Demand, waited time.Duration) bool {
	pl := dr.place.Load()
	for i := range demands {
		p := demands[i].Key.Partition()
		owner, replica := pl.owner[p], pl.replica[p]
		if waited < leastPatience && (dr.peers.isLost(owner) || dr.peers.isLost(replica)) {
			continue // other members may answer soon
		}
		switch {
		case owner == dr.self: // it goes on without its replica if another node is available
			if others := without(pl.members, owner); len(others) > 0 && !slices.ContainsFunc(others, dr.peers.responds) {
				return true
			}
		case dr.peers.silent(owner) && (replica == dr.self || dr.peers.silent(replica)):
			return true
		}
	}
	return false
}

func (ps *peers) responds(id string) bool { return !ps.silent(id) }

// without returns the members except one.
func without(members []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == id })
}

func (ps *peers) isLost(id string) bool { return id == "" || id != ps.self && ps.net.Lost(id) }
