package ratelimit

import "sync/atomic"

// member is another node, as this one deals with it.
type member struct {
	id      string
	queries batcher[*query]
	updates batcher[*update]
	// unreachableSince is when the member began to answer no queries, and tried when
	// it was last asked, by the clock of the windows; 0: it answers.
	unreachableSince, tried atomic.Int64
	// replicaUnreachable: it did not confirm the last updates. No decision waits for
	// it.
	replicaUnreachable atomic.Bool
}

// How many requests, and how many updates, go in one batch.
const maxQueryBatch, maxUpdateBatch = 256, 512

// member is what this node knows of another one.
func (l *Limiter) member(id string) *member {
	if m, ok := l.members.Load(id); ok {
		return m.(*member)
	}
	m := &member{id: id}
	m.queries = batcher[*query]{send: func(batch []*query) { l.sendQueries(m, batch) }, maxBatch: maxQueryBatch}
	m.updates = batcher[*update]{send: func(batch []*update) { l.sendUpdates(m, batch) }, maxBatch: maxUpdateBatch}
	first, _ := l.members.LoadOrStore(id, m)
	return first.(*member)
}

// unreachable tells whether not to ask the member: it does not answer, and it was
// tried a moment ago, or the caller skips the unreachable.
func (m *member) unreachable(now int64, skip bool) bool {
	if m.unreachableSince.Load() == 0 {
		return false
	}
	if skip {
		return true
	}
	last := m.tried.Load()
	return now-last < int64(probeInterval) || !m.tried.CompareAndSwap(last, now)
}

// heard notes whether the member answered.
func (m *member) heard(answered bool, now int64) {
	if answered {
		m.unreachableSince.Store(0)
		return
	}
	m.tried.Store(now)
	m.unreachableSince.CompareAndSwap(0, max(now, 1))
}
