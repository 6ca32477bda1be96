package ratelimit

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// way gathers what goes to one member. An idle way sends at once what it is
// given; on a busy one things ride together. There is no timer in it.
type batcher[T any] struct {
	send     func([]T) // waits for the answer
	maxBatch int       // how many ride together

	mu    sync.Mutex
	queue []T
	busy  bool // a batch is under way: the next one comes after it, in order
}

// put takes a thing to be sent.
func (b *batcher[T]) put(thing T) {
	b.mu.Lock()
	b.queue = append(b.queue, thing)
	start := !b.busy
	b.busy = true
	b.mu.Unlock()
	if start {
		go b.run()
	}
}

// run sends until nothing waits.
func (b *batcher[T]) run() {
	for {
		runtime.Gosched() // who is about to ask goes along
		b.mu.Lock()
		n := min(len(b.queue), b.maxBatch)
		if n == 0 {
			b.busy = false
			b.mu.Unlock()
			return
		}
		batch := b.queue[:n:n]
		if b.queue = b.queue[n:]; len(b.queue) == 0 {
			b.queue = nil
		}
		b.mu.Unlock()
		b.send(batch)
	}
}

// take empties the queue.
func (b *batcher[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.queue
	b.queue = nil
	return all
}

// waiting is what is in the queue.
func (b *batcher[T]) waiting() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queue)
}

// member is another node, as this one deals with it.
type member struct {
	id      string
	queries batcher[*query]
	updates batcher[*update]
	// Since when it is silent, and when it was last tried, by the clock of the
	// windows; 0: it answers.
	unreachableSince, tried atomic.Int64
	// deaf: it did not confirm the last copies, so nobody waits for it.
	replicaUnreachable atomic.Bool
}

// How many requests, and how many copies, ride together.
const maxQueryBatch, maxUpdateBatch = 256, 512

// way is how a member is reached.
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

// mute reports whether a member is not worth asking: it is silent, and it was
// tried a moment ago, or is not to be tried.
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

func (m *member) heard(answered bool, now int64) {
	if answered {
		m.unreachableSince.Store(0)
		return
	}
	m.tried.Store(now)
	m.unreachableSince.CompareAndSwap(0, max(now, 1))
}
