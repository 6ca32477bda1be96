// Package changetest provides a change feed for tests.
package changetest

import (
	"context"
	"errors"
	"time"
)

// Feed is always up to date, unless it is Stale.
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
