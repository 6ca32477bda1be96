package cluster

import (
	"slices"
	"time"
)

// Times of a handover.
const (
	// membershipLease is how long a member may consider itself a member after another member has confirmed it. A member
	// is given up later than that after its last message, so a replaced member no longer serves.
	membershipLease = time.Second
	// releaseTimeout is how long a former owner may take to release. A member that is silent for longer has lost its
	// lease.
	releaseTimeout = membershipLease + 250*time.Millisecond
	// grace is how long former owners are asked after a change: until every member has seen the change.
	grace = 5 * time.Second
	// doubtTime is how long a member stays that the gossip has given up but that still answers this node: long enough
	// to refute the gossip. It is much shorter than releaseTimeout. A node that gave the member up at once therefore
	// does not take over from it before its lease has ended here, too.
	doubtTime = 600 * time.Millisecond
	// movedTime is how long a member does not activate an identity that it has released: its ring may be out of date.
	movedTime = 2 * time.Second
)

// pastRing is a ring that was in force recently.
type pastRing struct {
	*ring
	until time.Time
}

// pendingActivation is a first activation that waits for former owners.
type pendingActivation struct{ done chan struct{} }

// holdsLease reports whether this node has a confirmed membership.
func (ms *membership) holdsLease() bool {
	return !ms.split.Load() && !ms.joining.Load() &&
		(ms.alone.Load() || ms.clock()-ms.confirmedAt.Load() < int64(membershipLease))
}

// owner returns the member that owns the identity; nil if there is none.
func (ms *membership) owner(key identity) *Member {
	key, ok := ms.n.placed(key)
	if !ok {
		return nil
	}
	if m, named := (*ms.known.Load())[key.id]; named {
		return &m
	}
	return ms.ring.Load().owner(key)
}

// owns reports whether this node owns the identity.
func (ms *membership) owns(key identity) bool {
	o := ms.owner(key)
	return o != nil && o.ID == ms.self.ID
}

// unsettled reports whether a first activation may have to call former owners.
func (ms *membership) unsettled() bool { return ms.clock() < ms.unsettledUntil.Load() }

// slot returns the activation of an identity that this node owns, and creates it if needed. It returns errElsewhere if
// another node owns the identity, or if this node does not own it yet. It may wait for former owners.
func (ms *membership) slot(key identity) (*activationSlot, error) {
	if slot := ms.n.find(key); slot != nil {
		return slot, nil
	}
	for {
		if !ms.holdsLease() || !ms.owns(key) {
			return nil, errElsewhere
		}
		former := ms.formerOwners(key)
		ms.mu.Lock()
		if t, moved := ms.moved[key]; moved && time.Now().Before(t) {
			ms.mu.Unlock()
			return nil, errElsewhere
		}
		if other := ms.activating[key]; other != nil {
			ms.mu.Unlock()
			<-other.done
			if slot := ms.n.find(key); slot != nil {
				return slot, nil
			}
			continue
		}
		if len(former) == 0 {
			ms.mu.Unlock()
			return ms.activateHere(key)
		}
		mine := &pendingActivation{make(chan struct{})}
		ms.activating[key] = mine
		ms.mu.Unlock()
		for _, m := range former {
			ms.askRelease(m, key)
		}
		slot, err := ms.activateHere(key)
		if err == nil {
			ms.n.takenOver.Add(1)
		}
		ms.mu.Lock()
		delete(ms.activating, key)
		ms.mu.Unlock()
		close(mine.done)
		return slot, err
	}
}

// activateHere activates an identity. It checks the ring again afterwards: a new ring may have swept the table before
// the activation was in it.
func (ms *membership) activateHere(key identity) (*activationSlot, error) {
	if !ms.holdsLease() {
		return nil, errElsewhere
	}
	slot, err := ms.n.activate(key)
	if err != nil {
		return nil, err
	}
	if !ms.owns(key) {
		ms.retire(slot)
		return nil, errElsewhere
	}
	return slot, nil
}

// formerOwners returns the other members that owned key recently.
func (ms *membership) formerOwners(key identity) (ids []string) {
	if !ms.unsettled() || key.id == ms.self.ID {
		return nil
	}
	now := time.Now()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, p := range ms.pastRings {
		o := p.owner(key)
		if o != nil && o.ID != ms.self.ID && now.Before(p.until) && !slices.Contains(ids, o.ID) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// askRelease makes a former owner release key. It returns when that is done, or when the member can no longer serve
// key.
func (ms *membership) askRelease(id string, key identity) {
	end := time.Now().Add(releaseTimeout)
	for time.Now().Before(end) && ms.ctx.Err() == nil {
		if ms.ended(id) {
			return
		}
		l := ms.linkTo(id)
		if l == nil {
			return
		}
		if _, err := l.call(ms.ctx, time.Until(end), frame{op: opRelease, kind: key.kind, id: key.id}, nil); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// release ends the activation of key for the member that owns it now, and returns when nothing of it runs here. This
// node's ring may be out of date, so it does not activate key again for movedTime.
func (ms *membership) release(key identity) {
	ms.mu.Lock()
	now := time.Now()
	if len(ms.moved) > 1<<16 {
		for k, t := range ms.moved {
			if now.After(t) {
				delete(ms.moved, k)
			}
		}
	}
	ms.moved[key] = now.Add(movedTime)
	mine := ms.activating[key]
	ms.mu.Unlock()
	if mine != nil {
		<-mine.done
	}
	if slot := ms.n.find(key); slot != nil {
		<-ms.retire(slot)
		ms.n.handedOver.Add(1)
	}
}

// retire makes an activation leave. It accepts no more messages, handles the queued ones and redirects waiting callers
// to the next owner. The returned channel is closed when it has ended.
func (ms *membership) retire(slot *activationSlot) <-chan struct{} {
	s := ms.n.shard(slot.key)
	s.mu.Lock()
	if s.m[slot.key] != slot {
		s.mu.Unlock()
		return closedChan
	}
	if slot.done == nil {
		slot.done = make(chan struct{})
	}
	done := slot.done
	s.mu.Unlock()
	for {
		n := slot.state.Load()
		if n < 0 {
			return done
		}
		if slot.state.CompareAndSwap(n, leaving+n) {
			if n == 0 {
				ms.n.sys.Root.Send(slot.pid, depart{})
			}
			return done
		}
	}
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// each calls visit with every activation of this node.
func (ms *membership) each(visit func(*activationSlot)) {
	for i := range ms.n.shards {
		s := &ms.n.shards[i]
		s.mu.RLock()
		all := make([]*activationSlot, 0, len(s.m))
		for _, slot := range s.m {
			all = append(all, slot)
		}
		s.mu.RUnlock()
		for _, slot := range all {
			visit(slot)
		}
	}
}

// retireForeign retires every activation that another member owns now.
func (ms *membership) retireForeign() (waits []<-chan struct{}) {
	ms.each(func(slot *activationSlot) {
		if !ms.owns(slot.key) {
			waits = append(waits, ms.retire(slot))
		}
	})
	ms.n.handedOver.Add(int64(len(waits)))
	return waits
}

// confirm records that a member has confirmed or denied this node's membership; sent is when it was asked. A node
// without a lease for a while was frozen or disconnected, and may have been replaced. Before it serves again it drops
// every activation, and calls the former owners for each new one.
func (ms *membership) confirm(sent int64, known bool) {
	ms.leaseMu.Lock()
	defer ms.leaseMu.Unlock()
	if !known {
		ms.confirmedAt.Store(never)
		return
	}
	if ms.clock()-sent >= int64(membershipLease) {
		return
	}
	if !ms.holdsLease() {
		ms.drop()
	}
	ms.confirmedAt.Store(max(ms.confirmedAt.Load(), sent))
	ms.holds(sent)
}

// holds records that this node held the lease at an instant; the caller holds leaseMu.
func (ms *membership) holds(at int64) { ms.held, ms.heldAt = true, max(ms.heldAt, at) }

// reactivateRows drops the persisted activations after members came back: while they were away, they may have changed
// the same rows.
func (ms *membership) reactivateRows(back []string) {
	ms.leaseMu.Lock()
	defer ms.leaseMu.Unlock()
	dropped := 0
	ms.each(func(slot *activationSlot) {
		if ms.n.kinds[slot.key.kind].rows && slot.key.id != ms.self.ID {
			slot.stale.Store(true)
			ms.retire(slot)
			dropped++
		}
	})
	if dropped > 0 {
		ms.log.Info("cluster: members are back; persisted actors are activated again",
			"members", back, "activations", dropped)
		ms.epoch.Add(1)
		ms.announce()
	}
}

const never = -1 << 62

// drop ends every activation without handling its queue. If the node held a lease, that is a lapse, whatever was
// active. The caller holds leaseMu.
func (ms *membership) drop() {
	ms.n.drops.Add(1)
	dropped := false
	ms.each(func(slot *activationSlot) {
		if slot.key.id != ms.self.ID {
			dropped = true
		}
		slot.stale.Store(true)
		ms.retire(slot)
	})
	ms.mu.Lock()
	ms.rememberRing(ms.ring.Load().without(ms.self.ID))
	listeners := slices.Clone(ms.onMove)
	ms.mu.Unlock()
	for _, tell := range listeners {
		tell(func(string, string) bool { return true })
	}
	if ms.held {
		ms.n.lapses.Add(1)
		ms.log.Warn("cluster: this node was temporarily not a member; its activations were dropped",
			"duration", time.Duration(ms.clock()-ms.heldAt))
	}
	ms.held = false
	if dropped {
		ms.epoch.Add(1)
		ms.announce()
	}
}

// rememberRing stores a ring whose owners must be asked; the caller holds the lock.
func (ms *membership) rememberRing(r *ring) {
	now := time.Now()
	ms.pastRings = slices.DeleteFunc(ms.pastRings, func(p pastRing) bool { return now.After(p.until) })
	if len(r.seats) == 0 {
		return
	}
	if len(ms.pastRings) >= 16 {
		ms.pastRings = slices.Delete(ms.pastRings, 0, 1)
	}
	ms.pastRings = append(ms.pastRings, pastRing{r, now.Add(grace)})
	ms.unsettledUntil.Store(ms.clock() + int64(grace))
}
