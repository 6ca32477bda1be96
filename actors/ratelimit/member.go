package ratelimit

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
)

// member is another node, as seen by this one. Instants are by the clock of the windows.
type member struct {
	id      string
	queries batcher[*query]
	updates batcher[*shard.Update]
	// asking and copying are the latencies of queries and of updates.
	asking, copying latency
	// silentSince is when the member stopped answering queries; 0: it answers.
	silentSince atomic.Int64
	probing     atomic.Bool // it is probed until it answers
	// replacedAt is when its replica was last asked to decide in its place.
	replacedAt atomic.Int64
	// replicaUnreachable: it did not confirm the last updates, so no decision waits for it. gone counts how often that
	// began; stoodAt is when the member last asked what it missed after a stall.
	replicaUnreachable atomic.Bool
	goneMu             sync.Mutex
	gone               uint64
	stoodAt            int64
	// confirmedAt is the time of sending of the last update that it has confirmed.
	confirmedAt atomic.Int64
	// settledAt is when this node last began to ask the member what it missed during a stall. goneThere is how often
	// the member had gone on without this node by then.
	settledAt atomic.Int64
	goneThere atomic.Uint64
	settling  atomic.Bool
	// witnessed are its admissions that this node remembers as a witness; inquiries are about them, when it is lost.
	witnessMu sync.Mutex
	witnessed shard.Witnessed
	inquiries batcher[*inquiry]
}

// The maximum number of requests, and of updates, in one batch.
const maxQueryBatch, maxUpdateBatch = 256, 512

// member returns the state of another member.
func (ps *peers) member(id string) *member {
	if m, ok := ps.members.Load(id); ok {
		return m.(*member)
	}
	m := &member{id: id}
	m.settledAt.Store(ps.table.Instant()) // nothing can have been missed before now
	m.confirmedAt.Store(ps.table.Instant())
	m.queries = batcher[*query]{send: func(batch []*query) { ps.sendQueries(m, batch) }, maxBatch: maxQueryBatch}
	m.updates = batcher[*shard.Update]{send: func(batch []*shard.Update) { ps.sendUpdates(m, batch) },
		maxBatch: maxUpdateBatch}
	m.inquiries = batcher[*inquiry]{send: func(batch []*inquiry) { ps.inquire(m, batch) }, maxBatch: maxQueryBatch}
	first, _ := ps.members.LoadOrStore(id, m)
	return first.(*member)
}

// unreachable reports whether the member does not answer and should not be asked.
func (m *member) unreachable() bool { return m.silentSince.Load() != 0 }

func (ps *peers) recordAnswer(m *member) {
	if m.silentSince.Load() == 0 {
		return
	}
	if since := m.silentSince.Swap(0); since != 0 {
		now := ps.table.Instant()
		m.asking.observe(min(time.Duration(now-since), mostPatience), now)
	}
}

// recordQueryFrom is recordAnswer for a member that sent a query to this node.
func (ps *peers) recordQueryFrom(id string) {
	if m, ok := ps.members.Load(id); ok {
		ps.recordAnswer(m.(*member))
	}
}

// recordSilence records that the member has been silent since an instant, and probes it until it answers. Until then no
// request waits for it.
func (ps *peers) recordSilence(m *member, since int64) {
	m.silentSince.CompareAndSwap(0, max(since, 1))
	if m.probing.Swap(true) {
		return
	}
	if !ps.inBackground(func() {
		for !ps.answers(m) {
			if !ps.keepsPartitions(m.id) {
				m.silentSince.Store(0) // it is assessed again when it comes back
				break
			}
			select {
			case <-time.After(probeInterval):
			case <-ps.ctx.Done():
				return
			}
		}
		m.probing.Store(false)
	}) {
		m.probing.Store(false) // the limiter is closed
	}
}

// answers reports whether a member answers at all, whatever its decisions wait for.
func (ps *peers) answers(m *member) bool {
	_, err := ps.net.Ask(ps.ctx, m.asking.patience(), m.id, queryName, &pb.RateAsk{})
	if err == nil {
		ps.recordAnswer(m)
	}
	return err == nil
}

func (ps *peers) keepsPartitions(id string) bool { return slices.Contains(ps.place.Load().members, id) }

// silent reports whether a member has been silent for longer than a short stall can explain. Time in which this node
// itself stalled does not count.
func (ps *peers) silent(id string) bool {
	if ps.isLost(id) {
		return true
	}
	since := ps.member(id).silentSince.Load()
	return since != 0 && ps.table.Instant()-max(since, ps.still.until.Load()) > int64(silenceTime)
}

// settleInterval is how often a node asks what it missed even without a stall of its own: another node may have
// considered it silent.
const settleInterval = 500 * time.Millisecond

// beat detects a stall of this node, and then asks for the missed updates.
func (f *follower) beat() {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			return
		}
		if f.peers.still.beat(f.table.Instant()) || n%int(settleInterval/beatInterval) == 0 {
			f.settleAll()
		}
	}
}

// settleAll asks every other member what this node has missed: whether, as an owner, it has gone on without this node,
// and what it has decided in this node's place.
func (f *follower) settleAll() {
	for _, id := range f.place.Load().members {
		if m := f.peers.member(id); id != f.self && !m.settling.Swap(true) && !f.inBackground(func() { f.settleWith(m) }) {
			m.settling.Store(false)
		}
	}
}

func (f *follower) settleWith(m *member) {
	defer m.settling.Store(false)
	for f.ctx.Err() == nil && f.peers.keepsPartitions(m.id) && !f.net.Lost(m.id) {
		began := f.table.Instant()
		got, err := f.net.Ask(f.ctx, m.copying.patience(), m.id, updateName, &pb.RateCopy{Stood: true})
		answer, ok := got.(*pb.RateCopied)
		if err != nil || !ok {
			time.Sleep(probeInterval)
			continue
		}
		if m.goneThere.Swap(answer.Gone) != answer.Gone {
			f.missed(m.id)
		}
		for _, p := range answer.Ahead {
			f.replicator.replaced(int(p), m.id)
		}
		m.settledAt.Store(began)
		storeMax(&m.confirmedAt, began)
		if !f.peers.still.since(began, f.table.Instant()) {
			return
		}
	}
}

// caughtUp reports whether no stall has made this node miss an update of an owner.
func (f *follower) caughtUp(owner string) bool {
	return !f.peers.still.since(f.peers.member(owner).settledAt.Load(), f.table.Instant())
}

// missed records that an owner has gone on without this node as its replica. The states are then requested.
func (f *follower) missed(owner string) {
	pl := f.place.Load()
	for p := range f.partitions {
		if pl.owner[p] == owner && pl.replica[p] == f.self {
			f.step(p, shard.Missed{})
		}
	}
	f.mover.requestMissing()
}

// goOn makes this node go on without the member as its replica, unless the member is back: it has asked, since an
// instant, what it missed.
func (m *member) goOn(since int64) bool {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	if m.stoodAt > since {
		return false
	}
	m.gone++
	m.replicaUnreachable.Store(true)
	return true
}

// recordCatchUp records that the member asks what it missed. It returns gone.
func (m *member) recordCatchUp(now int64) uint64 {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	m.stoodAt = now
	return m.gone
}

func storeMax(at *atomic.Int64, n int64) {
	for {
		if old := at.Load(); old >= n || at.CompareAndSwap(old, n) {
			return
		}
	}
}
