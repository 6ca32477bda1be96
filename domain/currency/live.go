package currency

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/change"
)

// Live is the snapshot that a node works with: Reload reads the reference data,
// and Follow is for notes of topic change.Currencies. It is safe for concurrent
// use.
type Live struct{ *change.Snapshot[Catalog] }

// NewLive returns a Live over store. Until the first Reload it knows nothing.
func NewLive(store Store) *Live {
	load := func(ctx context.Context) (*Catalog, error) {
		c, err := Load(ctx, store)
		if err != nil {
			return nil, fmt.Errorf("reload currencies: %w", err)
		}
		return c, nil
	}
	return &Live{change.NewSnapshot(NewCatalog(nil, nil, nil), load, nil)}
}

// Catalog is the present snapshot.
func (l *Live) Catalog() *Catalog { return l.Current() }

// reloadTimeout bounds the reading of what the snapshot does not know yet.
const reloadTimeout = 5 * time.Second

// Named finds the currency and the network that a stored record refers to.
// Another node may have added them a moment ago, so a snapshot that does not know
// them is read again, outside the caller's transaction: only what is committed
// may enter the snapshot.
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
