package firewall

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/change"
)

// Cache is the node's current snapshot. A writer of a rule updates it before the caller is answered. Every node
// updates it on a note of topic change.Firewall, whose key is the label of the rule: it reads only that rule. It is
// safe for concurrent use.
type Cache struct{ *change.Snapshot[Snapshot] }

// NewCache returns a Cache over the rules of an application. It is empty until the first Reload.
func NewCache(store Store, app string, now func() time.Time) *Cache {
	load := func(ctx context.Context) (*Snapshot, error) {
		rules, err := store.Rules(ctx, Query{})
		if err != nil {
			return nil, fmt.Errorf("reload the firewall rules: %w", err)
		}
		return Compile(rules, app, now().UnixMilli()), nil
	}
	apply := func(ctx context.Context, present *Snapshot, labels []string) (*Snapshot, error) {
		changed, err := store.Rules(ctx, Query{Labels: labels})
		if err != nil {
			return nil, fmt.Errorf("follow the firewall rules: %w", err)
		}
		return present.With(changed, now().UnixMilli()), nil
	}
	return &Cache{change.NewSnapshot(Compile(nil, app, now().UnixMilli()), load, apply)}
}
