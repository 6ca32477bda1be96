// Package changetest holds a change feed for tests of what relies on one.
package changetest

import (
	"context"
	"errors"
	"time"
)

// Feed is one that is always read, unless it is Stale.
type Feed struct{ Stale bool }

func (*Feed) Mark() time.Time { return time.Time{} }

func (f *Feed) Holds(time.Time) bool { return !f.Stale }

func (f *Feed) Poll(ctx context.Context) error { return f.CatchUp(ctx) }

func (f *Feed) CatchUp(context.Context) error {
	if f.Stale {
		return errors.New("the feed cannot be read")
	}
	return nil
}
