package mfa

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Live is the snapshot that a node works with. Whoever writes the
// configuration reloads it before answering, and every node does when the
// change feed brings a note of topic change.MFA; so a change holds for every
// challenge created afterwards. It is safe for concurrent use.
type Live struct {
	store   Store
	mu      sync.Mutex // one reload at a time: an older read never replaces a newer one
	current atomic.Pointer[Catalog]
}

// NewLive returns a Live over store. Until the first Reload it holds no
// method, so that nothing can be started.
func NewLive(store Store) *Live {
	l := &Live{store: store}
	l.current.Store(NewCatalog(nil, nil, nil))
	return l
}

// Catalog is the present snapshot.
func (l *Live) Catalog() *Catalog { return l.current.Load() }

// Reload reads the configuration. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := Load(ctx, l.store)
	if err != nil {
		return fmt.Errorf("reload the mfa configuration: %w", err)
	}
	l.current.Store(c)
	return nil
}
