package ratelimit

import (
	"runtime"
	"slices"
	"sync"
)

// batcher collects the messages to one member. An idle batcher sends a message at once; while a batch is being sent,
// the next one collects. It has no timer.
type batcher[T any] struct {
	send     func([]T) // returns when the answer has arrived
	maxBatch int

	mu    sync.Mutex
	queue []T
	busy  bool // a batch is being sent: the next one follows it, in order
}

// put adds an item to the queue.
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

// run sends until the queue is empty.
func (b *batcher[T]) run() {
	for {
		runtime.Gosched() // callers that are about to put join this batch
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

// waiting returns a copy of the queue.
func (b *batcher[T]) waiting() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queue)
}
