// Package balance owns what administrators see of the money of users as a whole
// (section 4.9 of the interface; decision D-PRC-06): sums over their accounts, and
// the position of each day.
//
// The one idea: a day that is over never changes, so it is summed once, and a
// question reads days and not movements. Only what is not summed yet, a day or two,
// is read movement by movement. Start reading at Service.Positions, then Summing.
package balance

import (
	"context"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
)

// Sum is what the accounts of users have of an asset. Available is the sum of what
// each account may use: a lock beyond the balance of one takes nothing of another.
type Sum struct {
	Asset                     int64
	Posted, Available, Locked amount.Amount
}

// Query selects accounts of users.
type Query struct {
	UserID *string // nil: of everybody
	Assets []int64 // nil: of every asset
}

// Day is what came into and left the accounts of users on a day (UTC), and what they
// had at its end.
type Day struct {
	Day     int64 // whole days since 1970
	Asset   int64
	In, Out amount.Amount
	Posted  amount.Amount
}

// Span is the first and the last day of an asset that are summed.
type Span struct{ Asset, First, Last int64 }

// Summed is the write of days that are over, of every asset that moved. A day that is
// there stays as it is.
type Summed struct{ Days []Day }

func (Summed) Table() string { return "asset_day" }

var _ commit.Write = Summed{}

// Store reads the ledger and the days that are summed. It is safe for concurrent
// use.
type Store interface {
	// Sums adds up the accounts of users by asset, in the order of assets.
	Sums(ctx context.Context, q Query) ([]Sum, error)
	// Moved adds up the movements from an instant to before another one, by day and
	// asset. Posted stays 0.
	Moved(ctx context.Context, from, to time.Time) ([]Day, error)
	// Next is the day of the first movement from an instant on; ok is false where
	// there is none.
	Next(ctx context.Context, from time.Time) (day int64, ok bool, err error)
	// Spans lists the assets that have days.
	Spans(ctx context.Context) ([]Span, error)
	// Days lists the days of some assets in a range, both ends included; nil: of all.
	Days(ctx context.Context, first, last int64, assets []int64) ([]Day, error)
	// Before lists the last day of each asset before a day.
	Before(ctx context.Context, day int64) ([]Day, error)
}

const msOfDay = 24 * int64(time.Hour/time.Millisecond)

// DayOf is the day of an instant.
func DayOf(t time.Time) int64 {
	ms := t.UnixMilli()
	return (ms - (ms%msOfDay+msOfDay)%msOfDay) / msOfDay
}

// Start is the first instant of a day.
func Start(day int64) time.Time { return time.UnixMilli(day * msOfDay).UTC() }

// grown is d after what moved on a later day.
func (d Day) grown(moved Day) (_ Day, err error) {
	d.Day, d.Asset, d.In, d.Out = moved.Day, moved.Asset, moved.In, moved.Out
	if d.Posted, err = d.Posted.Add(moved.In); err == nil {
		d.Posted, err = d.Posted.Sub(moved.Out)
	}
	return d, err
}
