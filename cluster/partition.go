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
type Component struct {
	Members int
	Least   string
}

// Before reports whether s serves rather than o.
func (c Component) Outranks(o Component) bool {
	return c.Members > o.Members || c.Members == o.Members && c.Least < o.Least
}

// OnApart has ask find out whether a side that serves rather than this one is
// there, by another way than the cluster's own; an error says that it cannot be
// told. Without it a node takes those that went silent for dead. It is set before
// Start.
func (n *Node) OnPartition(ask func(ctx context.Context, side Component) (others bool, err error)) {
	n.witness = ask
}

// Side is what this node belongs to, and hears reports whether a node is of it.
func (n *Node) Component() (component Component, hears func(id string) bool) {
	if n.membership == nil {
		return Component{1, n.Address()}, func(id string) bool { return id == n.Address() }
	}
	known := *n.membership.known.Load()
	return Component{len(known), slices.Min(slices.Collect(maps.Keys(known)))}, func(id string) bool {
		_, ok := known[id]
		l := n.membership.linkTo(id)
		return ok && (l == nil || !l.unreachable())
	}
}

// apartPause is how long after an answer this node asks again.
const witnessPause = 300 * time.Millisecond

// judge sees whether too many have gone silent. The loop calls it.
func (ms *membership) detectPartition(known map[string]Member) {
	if ms.n.witness == nil {
		return
	}
	ms.mu.Lock()
	for id, m := range ms.unreachable {
		_, back := known[id]
		for _, k := range known {
			back = back || k.Address == m.Address // it was started anew
		}
		if l := ms.links[id]; back || l != nil && l.dead.Load() {
			delete(ms.unreachable, id)
		}
	}
	partitioned := len(ms.unreachable) >= len(known)
	ms.mu.Unlock()
	if partitioned == ms.partitioned.Load() {
		return
	}
	ms.leaseMu.Lock()
	defer ms.leaseMu.Unlock()
	if partitioned {
		ms.log.Warn("cluster: most members have gone silent; no actors are served before it is known where they are")
		ms.drop()
	} else {
		ms.confirmedAt.Store(never) // those who are back must confirm it first
	}
	ms.partitioned.Store(partitioned)
	if partitioned && !ms.witnessing.Swap(true) {
		ms.background.Go(ms.askWitness)
	}
}

// whoIsThere asks until this node is not apart any more.
func (ms *membership) askWitness() {
	defer ms.witnessing.Store(false)
	for ms.partitioned.Load() && ms.ctx.Err() == nil {
		component, _ := ms.n.Component()
		outranked, err := ms.n.witness(ms.ctx, component)
		if err == nil && !outranked {
			ms.mu.Lock()
			clear(ms.unreachable)
			ms.mu.Unlock()
			ms.log.Info("cluster: nobody else is there")
			ms.wake()
		}
		select {
		case <-time.After(witnessPause):
		case <-ms.ctx.Done():
		}
	}
}
