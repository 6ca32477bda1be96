package ratelimit

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// way gathers what goes to one member. An idle way sends at once what it is
// given; on a busy one things ride together. There is no timer in it.
type way[T any] struct {
	send func([]T) // waits for the answer
	most int       // how many ride together

	mu    sync.Mutex
	queue []T
	busy  bool // a batch is under way: the next one comes after it, in order
}

// put takes a thing to be sent.
func (w *way[T]) put(thing T) {
	w.mu.Lock()
	w.queue = append(w.queue, thing)
	start := !w.busy
	w.busy = true
	w.mu.Unlock()
	if start {
		go w.run()
	}
}

// run sends until nothing waits.
func (w *way[T]) run() {
	for {
		runtime.Gosched() // who is about to ask goes along
		w.mu.Lock()
		n := min(len(w.queue), w.most)
		if n == 0 {
			w.busy = false
			w.mu.Unlock()
			return
		}
		batch := w.queue[:n:n]
		if w.queue = w.queue[n:]; len(w.queue) == 0 {
			w.queue = nil
		}
		w.mu.Unlock()
		w.send(batch)
	}
}

// take empties the queue.
func (w *way[T]) take() []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.queue
	w.queue = nil
	return all
}

// waiting is what is in the queue.
func (w *way[T]) waiting() []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.queue)
}

// member is another node, as this one deals with it.
type member struct {
	id     string
	asks   way[*ask]
	copies way[*copied]
	// Since when it is silent, and when it was last tried, by the clock of the
	// windows; 0: it answers.
	silentSince, tried atomic.Int64
	// deaf: it did not confirm the last copies, so nobody waits for it.
	deaf atomic.Bool
}

// How many requests, and how many copies, ride together.
const askMost, copyMost = 256, 512

// way is how a member is reached.
func (c *Counter) way(id string) *member {
	if m, ok := c.ways.Load(id); ok {
		return m.(*member)
	}
	m := &member{id: id}
	m.asks = way[*ask]{send: func(batch []*ask) { c.sendAsks(m, batch) }, most: askMost}
	m.copies = way[*copied]{send: func(batch []*copied) { c.sendCopies(m, batch) }, most: copyMost}
	first, _ := c.ways.LoadOrStore(id, m)
	return first.(*member)
}

// mute reports whether a member is not worth asking: it is silent, and it was
// tried a moment ago, or is not to be tried.
func (m *member) mute(now int64, leave bool) bool {
	if m.silentSince.Load() == 0 {
		return false
	}
	if leave {
		return true
	}
	last := m.tried.Load()
	return now-last < int64(probeTime) || !m.tried.CompareAndSwap(last, now)
}

func (m *member) heard(answered bool, now int64) {
	if answered {
		m.silentSince.Store(0)
		return
	}
	m.tried.Store(now)
	m.silentSince.CompareAndSwap(0, max(now, 1))
}
