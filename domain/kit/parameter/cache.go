package parameter

import (
	"context"
	"fmt"

	"castellan/domain/kit/change"
)

// Set is an immutable snapshot of the parameters that the service reads.
type Set struct{ values map[string]any }

// Cache is a node's current snapshot: Reload reads the parameters, and Follow handles notes of topic change.Parameters.
// It is safe for concurrent use.
type Cache struct{ *change.Snapshot[Set] }

// NewCache returns a Cache over store. Until the first Reload every parameter has its initial value.
func NewCache(store Store) *Cache {
	load := func(ctx context.Context) (*Set, error) {
		all, err := store.List(ctx, Query{})
		if err != nil {
			return nil, fmt.Errorf("reload parameters: %w", err)
		}
		stored := map[string]Parameter{}
		for _, p := range all {
			stored[p.Code] = p
		}
		set := &Set{map[string]any{}}
		for _, k := range kinds {
			p, ok := stored[k.first().Code]
			if !ok {
				continue
			}
			value, wrong := k.read(p.JSON)
			if wrong != "" {
				return nil, fmt.Errorf("the parameter %s: %s", p.Code, wrong)
			}
			set.values[p.Code] = value
		}
		return set, nil
	}
	return &Cache{change.NewSnapshot(&Set{}, load, nil)}
}

// Set returns the current snapshot.
func (l *Cache) Set() *Set { return l.Current() }
