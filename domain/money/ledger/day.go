package ledger

import (
	"context"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// Day is a closed day of an account: its balance and number of transfers at the end, and the incoming and outgoing sums
// within it. A day is a UTC day, and the id of a transfer determines its day. The sums of a day have no bound: a
// balance may turn over any number of times. Also, two transfers around midnight may be booked in another order than
// their ids.
type Day struct {
	Account string // account id
	Day     int64  // whole days since 1970
	Posted  amount.Sum
	In, Out amount.Sum
	Seq     int64
}

// Close inserts a closed day. RECORD_ALREADY_EXIST if it is closed.
type Close struct{ Day Day }

func (Close) Table() string { return "day" }

// Calendar reads the data for closing days.
type Calendar interface {
	// FirstDay returns the day of the first transfer; ok is false if there is none.
	FirstDay(ctx context.Context) (day int64, ok bool, err error)
	// LastDay is as in Books.
	LastDay(ctx context.Context) (day int64, ok bool, err error)
	// OfDay returns the next page of a day's transfers, by id.
	OfDay(ctx context.Context, day int64, after string) ([]Transfer, error)
	// DayBefore returns the last closed day of an account up to a day; the zero value if there is none.
	DayBefore(ctx context.Context, account string, day int64) (Day, error)
}

// closeAfter is how long after its end a day is closed: by then every movement that began in it is durable.
const closeAfter = time.Hour

// closeBatch is how many accounts are closed in one unit.
const closeBatch = 100

// CloseDays closes the days that ended an hour ago and are not closed yet, in order. It can be repeated, and
// interrupted at any point.
func CloseDays(ctx context.Context, c Calendar, to commit.Committer, now time.Time) error {
	day, ok, err := c.LastDay(ctx) // it may have been interrupted
	if err == nil && !ok {
		day, ok, err = c.FirstDay(ctx)
	}
	if err != nil || !ok {
		return err
	}
	for today := now.Add(-closeAfter).UnixMilli() / msOfDay; day < today; day++ {
		if err := closeDay(ctx, c, to, day); err != nil {
			return err
		}
	}
	return nil
}

func closeDay(ctx context.Context, c Calendar, to commit.Committer, day int64) error {
	moved, err := movedOn(ctx, c, day)
	if err != nil {
		return err
	}
	var batch []commit.Write
	flush := func() error {
		err := to.Commit(ctx, batch...)
		batch = nil
		return err
	}
	for account, d := range moved {
		if err := ctx.Err(); err != nil {
			return err
		}
		before, err := c.DayBefore(ctx, account, day)
		if err != nil {
			return err
		}
		if before.Account != "" && before.Day == day {
			continue // closed before the interruption
		}
		d.Posted = before.Posted.Add(d.Posted)
		d.Seq += before.Seq
		if batch = append(batch, Close{*d}); len(batch) == closeBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	if err := flush(); fault.CodeOf(err) != fault.RecordAlreadyExist { // otherwise another node was first
		return err
	}
	return nil
}

// movedOn returns the accounts that moved on a day, with their sums.
func movedOn(ctx context.Context, c Calendar, day int64) (map[string]*Day, error) {
	moved := map[string]*Day{}
	add := func(account string, a amount.Amount, in bool) {
		r := running{}
		if d := moved[account]; d != nil {
			r.Day = *d
		}
		r.add(Entry{Account: account, Amount: a}, in)
		r.Account, r.Day.Day = account, day
		moved[account] = &r.Day
	}
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page, err := c.OfDay(ctx, day, after)
		if err != nil || len(page) == 0 {
			return moved, err
		}
		for _, t := range page {
			add(t.Debit.ID(), t.Amount, false)
			add(t.Credit.ID(), t.Amount, true)
			after = t.ID
		}
	}
}
