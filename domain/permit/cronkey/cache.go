package cronkey

import (
	"context"
	"fmt"

	"castellan/domain/kit/change"
	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/keyring"
)

// Cache is the node's snapshot: Reload reads the keys, and Follow handles notes of topic change.CronKeys. It is safe
// for concurrent use.
type Cache struct {
	*change.Snapshot[map[string]keyring.Sum] // by name

	hasher clientkey.Hasher
}

// NewCache returns a Cache over a store. It has no keys until the first Reload.
func NewCache(store Store, hasher clientkey.Hasher) *Cache {
	load := func(ctx context.Context) (*map[string]keyring.Sum, error) {
		keys, err := store.Keys(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload cron keys: %w", err)
		}
		next := make(map[string]keyring.Sum, len(keys))
		for _, k := range keys {
			next[k.Name] = k.Hash
		}
		return &next, nil
	}
	return &Cache{change.NewSnapshot(&map[string]keyring.Sum{}, load, nil), hasher}
}

// Client returns the name of the client with this header, and false for any other text.
func (l *Cache) Client(header string) (name string, ok bool) {
	name, secret, ok := clientkey.Split(header)
	var stored []keyring.Sum
	if hash, known := (*l.Current())[name]; known {
		stored = append(stored, hash)
	}
	if !clientkey.Matches(l.hasher, domain, name, secret, stored...) || !ok {
		return "", false
	}
	return name, true
}
