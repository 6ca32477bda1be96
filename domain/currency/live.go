package currency

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Live is the snapshot that a node works with: loaded at the start, and again
// when the change feed brings a note of topic change.Currencies. It is safe for
// concurrent use.
type Live struct {
	store   Store
	mu      sync.Mutex // one reload at a time: an older read never replaces a newer one
	current atomic.Pointer[Catalog]
}

// NewLive returns a Live over store. Until the first Reload it knows nothing.
func NewLive(store Store) *Live {
	l := &Live{store: store}
	l.current.Store(NewCatalog(nil, nil, nil))
	return l
}

// Catalog is the present snapshot.
func (l *Live) Catalog() *Catalog { return l.current.Load() }

// Reload reads the reference data. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := Load(ctx, l.store)
	if err != nil {
		return fmt.Errorf("reload currencies: %w", err)
	}
	l.current.Store(c)
	return nil
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
