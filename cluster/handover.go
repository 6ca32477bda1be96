package cluster

import (
	"slices"
	"time"
)

// Times of a hand-over.
const (
	// lease is how long a member may believe that it belongs after the last
	// member that confirmed it. Nobody is given up sooner after it was last
	// heard, so whoever is replaced does not serve any more.
	lease = time.Second
	// releaseTime is how long a former owner may take to let go. One that says
	// nothing for so long has lost its lease.
	releaseTime = lease + 250*time.Millisecond
	// grace is how long former owners are asked after a change: until every
	// member has seen it.
	grace = 5 * time.Second
	// movedTime is how long a released identity stays away from a member that
	// still thinks it owns it.
	movedTime = 2 * time.Second
)

// pastRing is a ring that was in force until lately.
type pastRing struct {
	*ring
	until time.Time
}

// claim is a first activation that waits for former owners.
type claim struct{ done chan struct{} }

// holds reports whether this node knows that it still belongs.
func (f *fleet) holds() bool {
	return !f.apart.Load() && !f.joining.Load() && (f.alone.Load() || f.clock()-f.proof.Load() < int64(lease))
}

// owner is the member where the identity lives; nil when there is none.
func (f *fleet) owner(key identity) *Member {
	if m, named := (*f.known.Load())[key.id]; named {
		return &m
	}
	return f.ring.Load().owner(key)
}

// owns reports whether the identity lives here.
func (f *fleet) owns(key identity) bool {
	o := f.owner(key)
	return o != nil && o.ID == f.self.ID
}

// unsettled reports whether a first activation may have to wait for others.
func (f *fleet) unsettled() bool { return f.clock() < f.unsettledUntil.Load() }

// cell finds or makes the activation of an identity that lives here;
// errElsewhere when it does not, or not yet. It may wait for former owners.
func (f *fleet) cell(key identity) (*cell, error) {
	if c := f.n.find(key); c != nil {
		return c, nil
	}
	for {
		if !f.holds() || !f.owns(key) {
			return nil, errElsewhere
		}
		former := f.former(key)
		f.mu.Lock()
		if t, moved := f.moved[key]; moved && time.Now().Before(t) {
			f.mu.Unlock()
			return nil, errElsewhere
		}
		if other := f.claims[key]; other != nil {
			f.mu.Unlock()
			<-other.done
			if c := f.n.find(key); c != nil {
				return c, nil
			}
			continue
		}
		if len(former) == 0 {
			f.mu.Unlock()
			return f.settle(key)
		}
		mine := &claim{make(chan struct{})}
		f.claims[key] = mine
		f.mu.Unlock()
		for _, m := range former {
			f.askRelease(m, key)
		}
		c, err := f.settle(key)
		if err == nil {
			f.takenOver.Add(1)
		}
		f.mu.Lock()
		delete(f.claims, key)
		f.mu.Unlock()
		close(mine.done)
		return c, err
	}
}

// settle activates. A ring that came meanwhile may have passed the table
// before the activation was in it.
func (f *fleet) settle(key identity) (*cell, error) {
	if !f.holds() {
		return nil, errElsewhere
	}
	c, err := f.n.activate(key)
	if err != nil {
		return nil, err
	}
	if !f.owns(key) {
		f.retire(c)
		return nil, errElsewhere
	}
	return c, nil
}

// former are the other members that owned key lately.
func (f *fleet) former(key identity) (ids []string) {
	if !f.unsettled() || key.id == f.self.ID {
		return nil
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.past {
		o := p.owner(key)
		if o != nil && o.ID != f.self.ID && now.Before(p.until) && !slices.Contains(ids, o.ID) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// askRelease has a former owner let go of key. It returns once that is so, or
// once the member cannot serve it any more.
func (f *fleet) askRelease(id string, key identity) {
	end := time.Now().Add(releaseTime)
	for time.Now().Before(end) && f.ctx.Err() == nil {
		if f.ended(id) {
			return
		}
		l := f.linkTo(id)
		if l == nil {
			return
		}
		if _, err := l.call(f.ctx, time.Until(end), frame{op: opRelease, kind: key.kind, id: key.id}, nil); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// release lets go of key for the member that owns it now, and returns when
// nothing of it runs here. This node may not know of the change yet: it stays
// away from the identity for a moment.
func (f *fleet) release(key identity) {
	f.mu.Lock()
	now := time.Now()
	if len(f.moved) > 1<<16 {
		for k, t := range f.moved {
			if now.After(t) {
				delete(f.moved, k)
			}
		}
	}
	f.moved[key] = now.Add(movedTime)
	mine := f.claims[key]
	f.mu.Unlock()
	if mine != nil {
		<-mine.done
	}
	if c := f.n.find(key); c != nil {
		<-f.retire(c)
		f.handedOver.Add(1)
	}
}

// retire has an activation leave: nobody enters it any more, it handles what
// is queued, sends whoever still waits to the next owner, and is gone when the
// returned channel is closed.
func (f *fleet) retire(c *cell) <-chan struct{} {
	s := f.n.shard(c.key)
	s.mu.Lock()
	if s.m[c.key] != c {
		s.mu.Unlock()
		return closedChan
	}
	if c.done == nil {
		c.done = make(chan struct{})
	}
	done := c.done
	s.mu.Unlock()
	for {
		n := c.state.Load()
		if n < 0 {
			return done
		}
		if c.state.CompareAndSwap(n, leaving+n) {
			if n == 0 {
				f.n.sys.Root.Send(c.pid, depart{})
			}
			return done
		}
	}
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// each calls visit with every activation of this node.
func (f *fleet) each(visit func(*cell)) {
	for i := range f.n.shards {
		s := &f.n.shards[i]
		s.mu.RLock()
		all := make([]*cell, 0, len(s.m))
		for _, c := range s.m {
			all = append(all, c)
		}
		s.mu.RUnlock()
		for _, c := range all {
			visit(c)
		}
	}
}

// sweep lets go of everything that others own now.
func (f *fleet) sweep() (waits []<-chan struct{}) {
	f.each(func(c *cell) {
		if !f.owns(c.key) {
			waits = append(waits, f.retire(c))
		}
	})
	f.handedOver.Add(int64(len(waits)))
	return waits
}

// pong notes that a member has confirmed, or denied, that this node belongs;
// sent is when it was asked. A node that has not known it for a while, because
// it was frozen or cut off, may have been replaced without hearing of it:
// before it serves again it drops every activation, and asks the others for
// what it activates.
func (f *fleet) pong(sent int64, known bool) {
	f.leaseMu.Lock()
	defer f.leaseMu.Unlock()
	if !known {
		f.proof.Store(never)
		return
	}
	if f.clock()-sent >= int64(lease) {
		return
	}
	if !f.holds() {
		f.drop()
	}
	f.proof.Store(max(f.proof.Load(), sent))
}

// doubt drops what others may have acted for while the members that are back were
// away: this node does not know whether they were frozen or went on by themselves.
func (f *fleet) doubt(back []string) {
	f.leaseMu.Lock()
	defer f.leaseMu.Unlock()
	dropped := 0
	f.each(func(c *cell) {
		if f.n.kinds[c.key.kind].rows && c.key.id != f.self.ID {
			c.void.Store(true)
			f.retire(c)
			dropped++
		}
	})
	if dropped > 0 {
		f.log.Info("cluster: members are back; actors that stand in rows are activated anew", "members", back, "activations", dropped)
		f.epoch.Add(1)
		f.announce()
	}
}

const never = -1 << 62

// drop ends every activation without handling what is queued for it.
func (f *fleet) drop() {
	f.drops.Add(1)
	dropped := false
	f.each(func(c *cell) {
		if c.key.id != f.self.ID {
			dropped = true
		}
		c.void.Store(true)
		f.retire(c)
	})
	f.mu.Lock()
	f.recall(f.ring.Load().without(f.self.ID))
	listeners := slices.Clone(f.onMove)
	f.mu.Unlock()
	for _, tell := range listeners {
		tell(func(string, string) bool { return true })
	}
	if dropped {
		f.lapses.Add(1)
		f.log.Warn("cluster: this node did not know for a while that it belongs; its activations were dropped")
		f.epoch.Add(1)
		f.announce()
	}
}

// recall remembers a ring whose owners are to be asked; the caller holds the
// lock.
func (f *fleet) recall(r *ring) {
	now := time.Now()
	f.past = slices.DeleteFunc(f.past, func(p pastRing) bool { return now.After(p.until) })
	if len(r.seats) == 0 {
		return
	}
	if len(f.past) >= 16 {
		f.past = slices.Delete(f.past, 0, 1)
	}
	f.past = append(f.past, pastRing{r, now.Add(grace)})
	f.unsettledUntil.Store(f.clock() + int64(grace))
}
