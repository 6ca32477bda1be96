package mfa

import (
	"context"
	"fmt"

	"castellan/domain/kit/change"
)

// Cache is the node's snapshot. A writer of the configuration updates it before the caller is answered. Every node
// updates it on a note of topic change.MFA, so a change applies to every challenge created afterwards. It is safe for
// concurrent use.
type Cache struct{ *change.Snapshot[Catalog] }

// NewCache returns a Cache over a store. It has no methods until the first Reload, so no challenge can start.
func NewCache(store Store) *Cache {
	load := func(ctx context.Context) (*Catalog, error) {
		c, err := Load(ctx, store)
		if err != nil {
			return nil, fmt.Errorf("reload the mfa configuration: %w", err)
		}
		return c, nil
	}
	return &Cache{change.NewSnapshot(NewCatalog(nil, nil, nil), load, nil)}
}

// Catalog returns the current snapshot.
func (l *Cache) Catalog() *Catalog { return l.Current() }
