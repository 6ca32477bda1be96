package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/hashicorp/memberlist"
)

// membership is a node's role as a member of its cluster: the members, the ring that assigns identities to them, and
// the links to them.
type membership struct {
	n    *Node
	o    Options
	log  *slog.Logger
	self Member // ID, Address and Version; they do not change

	ring           atomic.Pointer[ring]
	known          atomic.Pointer[map[string]Member] // the members, including the leaving ones
	changed        atomic.Pointer[chan struct{}]     // closed when a caller should look again
	met            atomic.Pointer[[]byte]            // the members whose certificate this node has seen, as JSON
	newcomer       atomic.Bool                       // it has met no node that was in the gossip at its start
	joining        atomic.Bool                       // it does not have the list of members yet
	joined         atomic.Bool                       // it has the list, and its first ring is not built yet
	alone          atomic.Bool                       // it is the only member: no other can confirm its lease
	confirmedAt    atomic.Int64                      // when the last confirmed ping was sent
	unsettledUntil atomic.Int64
	epoch          atomic.Uint64
	calls          atomic.Int64
	peerNames      atomic.Int64
	rebuilds       atomic.Int64
	serving        atomic.Int64 // connections of members
	arrivals       handshakes
	leaseMu        sync.Mutex
	heldAt         int64 // when the lease was last known to be held; guarded by leaseMu
	held           bool  // the lease was held since the last drop; guarded by leaseMu

	mu         sync.Mutex
	peers      map[string]Member // by gossip, which does not check certificates
	links      map[string]*link
	doubted    map[string]time.Time // when the gossip gave up members that still answer here
	pastRings  []pastRing
	activating map[identity]*pendingActivation
	moved      map[identity]time.Time
	conns      map[net.Conn]bool // true: a member has shown its certificate
	seen       map[string]bool   // members that were ever on the ring
	onMove     []func(moved func(kind, id string) bool)

	unreachable map[string]Member // members that became unreachable without a goodbye; see networksplit.go
	split       atomic.Bool
	witnessing  atomic.Bool

	announcedLeave atomic.Bool // it has announced that it leaves
	started        time.Time
	listener       net.Listener
	gossip         *memberlist.Memberlist
	kick           chan struct{}
	background     sync.WaitGroup
	ctx            context.Context
	cancel         context.CancelFunc
}

func (ms *membership) clock() int64 { return int64(time.Since(ms.started)) }

func (ms *membership) linkTo(id string) *link {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.links[id]
}

func (ms *membership) belongs(id string) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	_, ok := ms.peers[id]
	return ok
}

// wakeCallers makes waiting callers look up their owners again.
func (ms *membership) wakeCallers() {
	next := make(chan struct{})
	close(*ms.changed.Swap(&next))
}

// wake makes the loop rebuild the ring.
func (ms *membership) wake() {
	select {
	case ms.kick <- struct{}{}:
	default:
	}
}

// loop is the only goroutine that changes the ring.
func (ms *membership) loop() {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ms.ctx.Done():
			return
		case <-ms.kick:
		case <-tick.C:
			ms.n.pauses.beat(ms.self.ID, ms.clock())
			ms.ping()
		}
		ms.rebuild()
	}
}

// ping asks every member to confirm this node's membership.
func (ms *membership) ping() {
	ms.mu.Lock()
	links := slices.Collect(maps.Values(ms.links))
	ms.mu.Unlock()
	for _, l := range links {
		if s := l.current.Load(); s != nil {
			l.ping(s)
			if l.unreachable() {
				ms.n.pending.fail(s)
			}
		}
	}
}

// rebuild builds the ring again from the current members.
func (ms *membership) rebuild() {
	met := ms.meet()
	if ms.joining.Load() && !ms.joined.Load() {
		return
	}
	now := time.Now()
	self := ms.self
	self.Leaving, self.Epoch = ms.announcedLeave.Load(), ms.epoch.Load()
	known, seated := map[string]Member{self.ID: self}, []Member{}
	if !self.Leaving {
		seated = append(seated, self)
	}
	var gone []*link
	ms.mu.Lock()
	for id, since := range ms.doubted {
		if now.Sub(since) > doubtTime || !ms.links[id].answersNow() {
			delete(ms.doubted, id)
			delete(ms.peers, id)
		}
	}
	for id, m := range ms.peers {
		l := ms.links[id]
		if l == nil || !l.taken || l.dead.Load() || l.barred.Load() {
			continue
		}
		known[id] = m
		if !m.Leaving {
			seated = append(seated, m)
		}
	}
	for id, l := range ms.links {
		if _, belongs := ms.peers[id]; belongs {
			continue
		}
		if l.until.IsZero() && l.taken && !l.dead.Load() && !l.barred.Load() && !l.left.Load() {
			ms.unreachable[id] = l.to
			ms.n.pauses.note(id, l.heardAt.Load(), ms.clock(), true)
		}
		switch {
		case l.until.IsZero():
			l.until = now.Add(grace)
			gone = append(gone, l)
		case now.After(l.until):
			delete(ms.links, id)
			l.stop()
		}
	}
	ms.mu.Unlock()
	if len(seated) == 0 { // all members leave: they keep their identities
		seated = slices.Collect(maps.Values(known))
	}
	ms.known.Store(&known)
	if !bytes.Equal(met, *ms.met.Load()) {
		ms.met.Store(&met)
	}
	if len(known) > 1 {
		ms.newcomer.Store(false)
	}
	ms.detectNetworkSplit(known)
	ms.noteAlone(len(known) == 1)
	for _, l := range gone { // they no longer answer
		if s := l.current.Load(); s != nil {
			ms.n.pending.fail(s)
		}
	}
	ms.install(newRing(seated))
	ms.n.provider.publishMembers(known)
	ms.joining.Store(false)
	ms.rebuilds.Add(1)
}

// noteAlone records whether this node is the only member.
func (ms *membership) noteAlone(alone bool) {
	if alone == ms.alone.Load() {
		return
	}
	ms.leaseMu.Lock()
	defer ms.leaseMu.Unlock()
	switch {
	case !alone && ms.confirmedAt.Load() != never:
		ms.confirmedAt.Store(ms.clock()) // as the only member it needed no confirmation
	case !ms.holdsLease():
		ms.drop()
	}
	if alone || ms.confirmedAt.Load() != never {
		ms.holds(ms.clock())
	}
	ms.alone.Store(alone)
}

// install puts a ring in force and retires the activations of other owners.
func (ms *membership) install(next *ring) {
	before := ms.ring.Load()
	if before.same(next) {
		return
	}
	ms.mu.Lock()
	ms.rememberRing(before)
	alone := len(before.seats) == 1 && before.has(ms.self.ID)
	if next.has(ms.self.ID) && (alone || !before.has(ms.self.ID)) {
		ms.rememberRing(next.without(ms.self.ID)) // the others have owned everything without this node
	}
	var back []string
	for _, m := range next.seats {
		if m.ID == ms.self.ID {
			continue
		}
		// A member that a new node learns of late may be older than this node.
		if !before.has(m.ID) && (ms.seen[m.ID] || len(before.seats) > 1 && ms.clock() < int64(grace)) {
			back = append(back, m.ID)
			ms.rememberRing(&ring{[]seat{m}}) // it may have owned everything alone
		}
		ms.seen[m.ID] = true
	}
	clear(ms.moved)
	listeners := slices.Clone(ms.onMove)
	ms.mu.Unlock()
	ms.ring.Store(next)
	ms.retireForeign()
	if len(back) > 0 {
		ms.reactivateRows(back)
	}
	ms.wakeCallers()
	ms.log.Info("cluster: members", "count", len(next.seats), "activations", ms.n.Live())
	for _, tell := range listeners {
		tell(func(kind, id string) bool { return before.moved(next, identity{kind, id}) })
	}
}

// newLink starts the link to a member; the caller holds the lock.
func (ms *membership) newLink(m Member) *link {
	l := &link{membership: ms, to: m}
	l.ctx, l.stop = context.WithCancel(ms.ctx)
	ms.links[m.ID] = l
	ms.background.Go(l.run)
	return l
}

var _ actor.Process = (*peer)(nil)
