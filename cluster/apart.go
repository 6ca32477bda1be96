package cluster

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A member that dies is refused at its address, one that leaves says so. Of those
// that go silent nobody knows: they are dead, or this node is cut off and they go
// on without it. Once at least half of the members have gone so, this node serves
// no actors before somebody else than the network has told it who is there: the
// database, which all nodes share.

// Side describes the members that a node hears, itself included: of two sides that
// are apart the larger one serves, of two alike the one with the least id.
type Side struct {
	Members int
	Least   string
}

// Before reports whether s serves rather than o.
func (s Side) Before(o Side) bool {
	return s.Members > o.Members || s.Members == o.Members && s.Least < o.Least
}

// OnApart has ask find out whether a side that serves rather than this one is
// there, by another way than the cluster's own; an error says that it cannot be
// told. Without it a node takes those that went silent for dead. It is set before
// Start.
func (n *Node) OnApart(ask func(ctx context.Context, side Side) (others bool, err error)) {
	n.others = ask
}

// Side is what this node belongs to, and hears reports whether a node is of it.
func (n *Node) Side() (side Side, hears func(id string) bool) {
	if n.fleet == nil {
		return Side{1, n.Address()}, func(id string) bool { return id == n.Address() }
	}
	known := *n.fleet.known.Load()
	return Side{len(known), slices.Min(slices.Collect(maps.Keys(known)))}, func(id string) bool {
		_, ok := known[id]
		l := n.fleet.linkTo(id)
		return ok && (l == nil || !l.quiet())
	}
}

// apartPause is how long after an answer this node asks again.
const apartPause = 300 * time.Millisecond

// judge sees whether too many have gone silent. The loop calls it.
func (f *fleet) judge(known map[string]Member) {
	if f.n.others == nil {
		return
	}
	f.mu.Lock()
	for id, m := range f.lost {
		_, back := known[id]
		for _, k := range known {
			back = back || k.Address == m.Address // it was started anew
		}
		if l := f.links[id]; back || l != nil && l.dead.Load() {
			delete(f.lost, id)
		}
	}
	apart := len(f.lost) >= len(known)
	f.mu.Unlock()
	if apart == f.apart.Load() {
		return
	}
	f.leaseMu.Lock()
	defer f.leaseMu.Unlock()
	if apart {
		f.log.Warn("cluster: most members have gone silent; no actors are served before it is known where they are")
		f.drop()
	} else {
		f.proof.Store(never) // those who are back must confirm it first
	}
	f.apart.Store(apart)
	if apart && !f.asking.Swap(true) {
		f.work.Go(f.whoIsThere)
	}
}

// whoIsThere asks until this node is not apart any more.
func (f *fleet) whoIsThere() {
	defer f.asking.Store(false)
	for f.apart.Load() && f.ctx.Err() == nil {
		side, _ := f.n.Side()
		others, err := f.n.others(f.ctx, side)
		if err == nil && !others {
			f.mu.Lock()
			clear(f.lost)
			f.mu.Unlock()
			f.log.Info("cluster: nobody else is there")
			f.wake()
		}
		select {
		case <-time.After(apartPause):
		case <-f.ctx.Done():
		}
	}
}
