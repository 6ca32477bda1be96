package firewall

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Live is the snapshot that a node judges by. Whoever writes a rule reloads it
// before answering, and every node does when the change feed brings a note of
// topic change.Firewall. It is safe for concurrent use.
type Live struct {
	store   Store
	app     string
	now     func() time.Time
	mu      sync.Mutex // one reload at a time: an older read never replaces a newer one
	current atomic.Pointer[Snapshot]
}

// NewLive returns a Live over the rules of an application. Until the first
// Reload it holds none.
func NewLive(store Store, app string, now func() time.Time) *Live {
	l := &Live{store: store, app: app, now: now}
	l.current.Store(Compile(nil, app, now().UnixMilli()))
	return l
}

// Snapshot is the present one.
func (l *Live) Snapshot() *Snapshot { return l.current.Load() }

// Reload reads and compiles the rules. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rules, err := l.store.Rules(ctx)
	if err != nil {
		return fmt.Errorf("reload the firewall rules: %w", err)
	}
	l.current.Store(Compile(rules, l.app, l.now().UnixMilli()))
	return nil
}
