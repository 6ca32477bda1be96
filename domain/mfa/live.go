package mfa

import (
	"context"
	"fmt"

	"castellan/domain/change"
)

// Live is the snapshot that a node works with. Whoever writes the
// configuration reloads it before answering, and every node does when the
// change feed brings a note of topic change.MFA; so a change holds for every
// challenge created afterwards. It is safe for concurrent use.
type Live struct {
	store   Store
	catalog *change.Snapshot[Catalog]
}

// NewLive returns a Live over store. Until the first Reload it holds no
// method, so that nothing can be started.
func NewLive(store Store) *Live {
	return &Live{store, change.NewSnapshot(NewCatalog(nil, nil, nil))}
}

// Catalog is the present snapshot.
func (l *Live) Catalog() *Catalog { return l.catalog.Current() }

// Reload reads the configuration. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	return l.catalog.Update(ctx, func(ctx context.Context, _ *Catalog) (*Catalog, error) {
		c, err := Load(ctx, l.store)
		if err != nil {
			return nil, fmt.Errorf("reload the mfa configuration: %w", err)
		}
		return c, nil
	})
}
