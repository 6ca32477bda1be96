// Package turn serialises callers within a process that would otherwise fail at the same fence. It saves work and
// guarantees nothing: other nodes do not wait, and only the fence of the row is binding.
package turn

import (
	"context"
	"sync"
)

// Turns holds the turns of all keys. The zero value is ready; it is safe for concurrent use.
type Turns struct {
	mu   sync.Mutex
	keys map[string]*turn
}

type turn struct {
	callers int // callers that hold or wait for the turn; under Turns.mu
	token   chan struct{}
}

// Take waits for the turn of a key; leave passes it to the next caller. The error is that of ctx.
func (t *Turns) Take(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	u := t.keys[key]
	if u == nil {
		if t.keys == nil {
			t.keys = map[string]*turn{}
		}
		u = &turn{token: make(chan struct{}, 1)}
		t.keys[key] = u
	}
	u.callers++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.callers--; u.callers == 0 {
			delete(t.keys, key)
		}
	}
	select {
	case u.token <- struct{}{}:
		return func() { <-u.token; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}
