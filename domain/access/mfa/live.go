package mfa

import (
	"context"
	"fmt"

	"castellan/domain/kit/change"
)

// Live is the node's snapshot. A writer of the configuration updates it before the caller is answered. Every node
// updates it on a note of topic change.MFA, so a change applies to every challenge created afterwards. It is safe for
// concurrent use.
type Live struct{ *change.Snapshot[Catalog] }

// NewLive returns a Live over a store. It has no methods until the first Reload, so no challenge can start.
func NewLive(store Store) *Live {
	load := func(ctx context.Context) (*Catalog, error) {
		c, err := Load(ctx, store)
		if err != nil {
			return nil, fmt.Errorf("reload the mfa configuration: %w", err)
		}
		return c, nil
	}
	return &Live{change.NewSnapshot(NewCatalog(nil, nil, nil), load, nil)}
}

// Catalog returns the current snapshot.
func (l *Live) Catalog() *Catalog { return l.Current() }
