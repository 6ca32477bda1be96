package firewall

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/change"
)

// Live is the snapshot that a node judges by. Whoever writes a rule reloads it
// before answering, and every node does when the change feed brings a note of
// topic change.Firewall. It is safe for concurrent use.
type Live struct {
	store Store
	app   string
	now   func() time.Time
	rules *change.Snapshot[Snapshot]
}

// NewLive returns a Live over the rules of an application. Until the first
// Reload it holds none.
func NewLive(store Store, app string, now func() time.Time) *Live {
	return &Live{store, app, now, change.NewSnapshot(Compile(nil, app, now().UnixMilli()))}
}

// Snapshot is the present one.
func (l *Live) Snapshot() *Snapshot { return l.rules.Current() }

// Reload reads and compiles the rules. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	return l.rules.Update(ctx, func(ctx context.Context, _ *Snapshot) (*Snapshot, error) {
		rules, err := l.store.Rules(ctx, Query{})
		if err != nil {
			return nil, fmt.Errorf("reload the firewall rules: %w", err)
		}
		return Compile(rules, l.app, l.now().UnixMilli()), nil
	})
}
