package change

import (
	"context"
	"sync"
	"time"
)

// turns does one kind of work for many callers, one turn at a time. A turn that begins after a call serves that call,
// so it sees the caller's commits; waiting callers share the next turn. A turn belongs to no caller: it continues if a
// caller disconnects.
type turns[J any] struct {
	work  func(ctx context.Context, job J) error
	limit time.Duration // of one turn

	mu      sync.Mutex
	working bool
	now     *turn[J] // running
	next    *turn[J] // begins when now is over
}

type turn[J any] struct {
	job  J
	done chan struct{}
	err  error // set when done is closed
}

// do adds to the job of the next turn and waits until that turn is over. ctx limits the wait and not the turn, which
// has its own context and joins no transaction of the caller.
func (t *turns[J]) do(ctx context.Context, add func(*J)) error {
	t.mu.Lock()
	mine := t.queue()
	if add != nil {
		add(&mine.job)
	}
	t.mu.Unlock()
	return mine.wait(ctx)
}

// join waits for the running turn, or for one that begins now.
func (t *turns[J]) join(ctx context.Context) error {
	t.mu.Lock()
	mine := t.now
	if mine == nil {
		mine = t.queue()
	}
	t.mu.Unlock()
	return mine.wait(ctx)
}

// queue returns the next turn. It is called under mu.
func (t *turns[J]) queue() *turn[J] {
	if t.next == nil {
		t.next = &turn[J]{done: make(chan struct{})}
	}
	if !t.working {
		t.working = true
		go t.run()
	}
	return t.next
}

// run takes turns until no caller waits.
func (t *turns[J]) run() {
	for {
		t.mu.Lock()
		t.now, t.next = t.next, nil
		if t.now == nil {
			t.working = false
			t.mu.Unlock()
			return
		}
		mine := t.now
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), t.limit)
		mine.err = t.work(ctx, mine.job)
		cancel()
		close(mine.done)
	}
}

func (t *turn[J]) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
