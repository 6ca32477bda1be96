package totp

import (
	"context"
	"sync"
)

// turns lets the callers of one user decide one after another within a
// process, so that they do not fence each other out. It spares work and
// promises nothing: other nodes do not wait.
type turns struct {
	mu    sync.Mutex
	users map[string]*turn
}

type turn struct {
	callers int // who has it or waits for it; under turns.mu
	token   chan struct{}
}

// take waits for the user's turn; leave gives it to the next one.
func (t *turns) take(ctx context.Context, userID string) (leave func(), err error) {
	t.mu.Lock()
	u := t.users[userID]
	if u == nil {
		if t.users == nil {
			t.users = map[string]*turn{}
		}
		u = &turn{token: make(chan struct{}, 1)}
		t.users[userID] = u
	}
	u.callers++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.callers--; u.callers == 0 {
			delete(t.users, userID)
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
