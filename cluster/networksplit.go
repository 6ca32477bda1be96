package cluster

import (
	"context"
	"maps"
	"slices"
	"time"
)

// This file detects a network split. A dead member is refused at its address, and a leaving member announces it. A
// member that becomes unreachable is dead, or this node is disconnected and the others go on without it. When at least
// half of the members have become unreachable, this node serves no actors until a witness outside the network has
// reported which members are there. The witness is the database, which all nodes share.

// Component describes the members that a node hears, itself included. Of two components of a split cluster the larger
// one serves; if they have the same size, the one with the smallest id serves. A node that has just started and met no
// member has no weight: it counts no member.
type Component struct {
	Members int
	Least   string
}

// Outranks reports whether c serves rather than o.
func (c Component) Outranks(o Component) bool {
	return c.Members > o.Members || c.Members == o.Members && c.Least < o.Least
}

// OnNetworkSplit sets the witness: it reports, by other means than the cluster's links, whether another component
// outranks this one, or an error if it cannot decide. Without a witness, a node considers unreachable members dead. It
// is called before Start.
func (n *Node) OnNetworkSplit(witness func(ctx context.Context, c Component) (outranked bool, err error)) {
	n.witness = witness
}

// Component returns the component of this node; hears reports whether another node belongs to it.
func (n *Node) Component() (component Component, hears func(id string) bool) {
	if n.membership == nil {
		return Component{1, n.Address()}, func(id string) bool { return id == n.Address() }
	}
	known := *n.membership.known.Load()
	count := len(known)
	if n.membership.newcomer.Load() {
		count = 0
	}
	return Component{count, slices.Min(slices.Collect(maps.Keys(known)))}, func(id string) bool {
		_, ok := known[id]
		l := n.membership.linkTo(id)
		return ok && (l == nil || !l.unreachable())
	}
}

// witnessPause is the pause between two calls of the witness.
const witnessPause = 300 * time.Millisecond

// detectNetworkSplit checks whether too many members are unreachable. Only the loop calls it.
func (ms *membership) detectNetworkSplit(known map[string]Member) {
	if ms.n.witness == nil {
		return
	}
	ms.mu.Lock()
	for id, m := range ms.unreachable {
		_, back := known[id]
		for _, k := range known {
			back = back || k.Address == m.Address // it was restarted
		}
		if l := ms.links[id]; back || l != nil && (l.dead.Load() || l.barred.Load()) {
			delete(ms.unreachable, id)
		}
	}
	split := len(ms.unreachable) >= len(known)
	ms.mu.Unlock()
	if split == ms.split.Load() {
		return
	}
	ms.leaseMu.Lock()
	defer ms.leaseMu.Unlock()
	if split {
		ms.log.Warn("cluster: most members are unreachable; no actors are served until the witness has located them")
		ms.drop()
	} else {
		ms.confirmedAt.Store(never) // the returned members must confirm it first
	}
	ms.split.Store(split)
	if split && !ms.witnessing.Swap(true) {
		ms.background.Go(ms.askWitness)
	}
}

// askWitness calls the witness until the network split is over.
func (ms *membership) askWitness() {
	defer ms.witnessing.Store(false)
	for ms.split.Load() && ms.ctx.Err() == nil {
		component, _ := ms.n.Component()
		outranked, err := ms.n.witness(ms.ctx, component)
		if err == nil && !outranked {
			ms.mu.Lock()
			clear(ms.unreachable)
			ms.mu.Unlock()
			ms.newcomer.Store(false)
			ms.log.Info("cluster: no other component exists")
			ms.wake()
		}
		select {
		case <-time.After(witnessPause):
		case <-ms.ctx.Done():
		}
	}
}
