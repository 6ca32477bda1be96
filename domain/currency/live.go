package currency

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/change"
)

// Live is the snapshot that a node works with: loaded at the start, and again
// when the change feed brings a note of topic change.Currencies. It is safe for
// concurrent use.
type Live struct {
	store   Store
	catalog *change.Snapshot[Catalog]
}

// NewLive returns a Live over store. Until the first Reload it knows nothing.
func NewLive(store Store) *Live {
	return &Live{store, change.NewSnapshot(NewCatalog(nil, nil, nil))}
}

// Catalog is the present snapshot.
func (l *Live) Catalog() *Catalog { return l.catalog.Current() }

// Reload reads the reference data. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	return l.catalog.Update(ctx, func(ctx context.Context, _ *Catalog) (*Catalog, error) {
		c, err := Load(ctx, l.store)
		if err != nil {
			return nil, fmt.Errorf("reload currencies: %w", err)
		}
		return c, nil
	})
}

// reloadTimeout bounds the reading of what the snapshot does not know yet.
const reloadTimeout = 5 * time.Second

// Named finds what a stored record refers to. Another node may have added it a
// moment ago; what the snapshot does not know is read once more. It reads
// outside the caller's transaction: only what is committed may enter the
// snapshot.
func (l *Live) Named(currencyID, networkID int64) (Currency, Network, error) {
	if c, n, ok := l.Catalog().Named(currencyID, networkID); ok {
		return c, n, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	if err := l.Reload(ctx); err != nil {
		return Currency{}, Network{}, err
	}
	c, n, ok := l.Catalog().Named(currencyID, networkID)
	if !ok {
		return c, n, fmt.Errorf("there is no currency %d or no network %d", currencyID, networkID)
	}
	return c, n, nil
}
