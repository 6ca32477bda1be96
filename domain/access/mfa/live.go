package mfa

import (
	"context"
	"fmt"

	"castellan/domain/kit/change"
)

// Live is the snapshot that a node works with. A writer of the configuration has
// it follow before the caller is answered, and every node does when the change
// feed brings a note of topic change.MFA; so a change holds for every challenge
// created afterwards. It is safe for concurrent use.
type Live struct{ *change.Snapshot[Catalog] }

// NewLive returns a Live over store. Until the first Reload it holds no
// method, so that nothing can be started.
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

// Catalog is the present snapshot.
func (l *Live) Catalog() *Catalog { return l.Current() }
