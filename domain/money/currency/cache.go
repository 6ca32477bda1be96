package currency

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
)

// Cache is a node's current snapshot: Reload reads the reference data, and Follow handles notes of topic
// change.Currencies. It is safe for concurrent use.
type Cache struct{ *change.Snapshot[Catalog] }

// NewCache returns a Cache over store. Until the first Reload it is empty.
func NewCache(store Store) *Cache {
	load := func(ctx context.Context) (*Catalog, error) {
		c, err := Load(ctx, store)
		if err != nil {
			return nil, fmt.Errorf("reload currencies: %w", err)
		}
		return c, nil
	}
	return &Cache{change.NewSnapshot(NewCatalog(nil, nil, nil), load, nil)}
}

// Catalog returns the current snapshot.
func (l *Cache) Catalog() *Catalog { return l.Current() }

// reloadTimeout limits the read for a record that the snapshot lacks.
const reloadTimeout = 5 * time.Second

// FindByIDs finds the currency and the network that a stored record refers to.
func (l *Cache) FindByIDs(currencyID, networkID int64) (cur Currency, net Network, err error) {
	ok, err := l.find(func(c *Catalog) (ok bool) { cur, net, ok = c.FindByIDs(currencyID, networkID); return ok })
	if err == nil && !ok {
		err = fmt.Errorf("there is no currency %d or no network %d", currencyID, networkID)
	}
	return cur, net, err
}

// Pair finds a pair with its currency and network. RECORD_NOT_FOUND.
func (l *Cache) Pair(id int64) (p Listed, err error) {
	ok, err := l.find(func(c *Catalog) (ok bool) { p, ok = c.Pair(id); return ok })
	if err == nil && !ok {
		err = fault.New(fault.RecordNotFound, "no such currency of a network")
	}
	return p, err
}

// Asset returns the pair with the id of an asset. If the catalogue no longer has it, the number of the asset replaces
// the currency code, so that no money is hidden.
func (l *Cache) Asset(id int64) (Listed, error) {
	p, err := l.Pair(id)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return Listed{Pair: Pair{ID: id}, Currency: Currency{Code: strconv.FormatInt(id, 10)}}, nil
	}
	return p, err
}

// find looks for a stored record. Another node may have just added it, so a snapshot that lacks it is read again,
// outside the caller's transaction: only committed data may enter the snapshot.
func (l *Cache) find(known func(*Catalog) bool) (bool, error) {
	if known(l.Catalog()) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	if err := l.Reload(ctx); err != nil {
		return false, err
	}
	return known(l.Catalog()), nil
}
