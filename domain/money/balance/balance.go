// Package balance reports the total funds of users to administrators (section 4.9 of the interface; decision D-PRC-06):
// sums over their accounts, and the position of each day.
//
// The one idea: a past day never changes, so it is summed once, and a query reads days and not movements. Only the last
// day or two, which are not summed yet, are read movement by movement. Start reading at Service.Positions, then
// Summing.
package balance

import (
	"context"
	"time"

	"castellan/domain/kit/amount"
)

// Sum is the total of an asset over the accounts of users. Available is the sum of the available amounts of all
// accounts: a lock beyond one balance does not reduce another.
type Sum struct {
	Asset                     int64
	Posted, Available, Locked amount.Sum
}

// Query selects accounts of users.
type Query struct {
	UserID *string // nil: of all users
	Assets []int64 // nil: every asset
}

// Day holds the incoming and outgoing amounts of the accounts of users on a day (UTC), and their total at its end.
type Day struct {
	Day     int64 // whole days since 1970
	Asset   int64
	In, Out amount.Sum
	Posted  amount.Sum
}

// Span is the first and the last summed day of an asset.
type Span struct{ Asset, First, Last int64 }

// Summed writes past days, for every asset that moved. An existing day is unchanged.
type Summed struct{ Days []Day }

func (Summed) Table() string { return "asset_day" }

// Store reads the ledger and the summed days. It is safe for concurrent use.
type Store interface {
	// Sums adds up the accounts of users by asset, in the order of assets.
	Sums(ctx context.Context, q Query) ([]Sum, error)
	// Moved adds up the movements in [from, to), by day and asset. Posted stays 0.
	Moved(ctx context.Context, from, to time.Time) ([]Day, error)
	// Next returns the day of the first movement at or after an instant; ok is false if there is none.
	Next(ctx context.Context, from time.Time) (day int64, ok bool, err error)
	// Spans lists the assets with summed days.
	Spans(ctx context.Context) ([]Span, error)
	// Days lists the days of the assets in a range, both ends included; nil: all assets.
	Days(ctx context.Context, first, last int64, assets []int64) ([]Day, error)
	// Before lists the last day of each asset before a day.
	Before(ctx context.Context, day int64) ([]Day, error)
}

const msOfDay = 24 * int64(time.Hour/time.Millisecond)

// DayOf returns the day of an instant.
func DayOf(t time.Time) int64 { return t.Truncate(24*time.Hour).UnixMilli() / msOfDay }

// Start returns the first instant of a day.
func Start(day int64) time.Time { return time.UnixMilli(day * msOfDay).UTC() }

// grown returns d after the movements of a later day.
func (d Day) grown(moved Day) Day {
	return Day{moved.Day, moved.Asset, moved.In, moved.Out, d.Posted.Add(moved.In).Sub(moved.Out)}
}
