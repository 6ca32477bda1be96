package money

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Limits struct{ db *engine.DB }

var _ limit.Store = Limits{}

// NewLimits returns what accounts received and sent, as db has it.
func NewLimits(db *engine.DB) Limits { return Limits{db} }

type movedRow struct {
	Received bool
	AssetID  int64
	Today    bool
	record.SumColumns
}

// amount returns the sum if it is an amount. ErrRange.
func (r movedRow) amount() (amount.Amount, error) {
	sum, err := r.Sum()
	if err != nil {
		return amount.Amount{}, err
	}
	return sum.Amount()
}

// movedOf selects what an account received and sent since month, and what waits in the
// queue to be sent. Ids of transfers begin with their instant.
func movedOf(db bun.IDB, userID string, month, day time.Time) *bun.SelectQuery {
	side := func(table string, received bool) *bun.SelectQuery {
		return db.NewSelect().Table(table).ColumnExpr("? AS received", received).
			Column("asset_id", "transfer_id", "hi", "lo").Where("user_id = ?", userID).
			Where("transfer_id >= ?", id.Before(month))
	}
	waits := db.NewSelect().Table("withdrawal").ColumnExpr("? AS received", false).
		Column("asset_id", "transfer_id", "hi", "lo").Where("user_id = ?", userID).
		Where("status = -1").Where("COALESCE(transfer_id, '') = ''") // IS NULL would lead SQLite to all users
	all := side("deposit", true).UnionAll(side("withdrawal", false)).UnionAll(waits)
	reversed := db.NewSelect().TableExpr("transfer AS r").ColumnExpr("1").Where("r.reverses = m.transfer_id")
	return record.WithSums(db.NewSelect().TableExpr("(?) AS m", all).Column("m.received", "m.asset_id").
		ColumnExpr("COALESCE(m.transfer_id >= ?, ?) AS today", id.Before(day), true)).
		Where("NOT EXISTS (?)", reversed).GroupExpr("1, 2, 3").OrderExpr("2, 1, 3")
}

func (s Limits) Moved(ctx context.Context, userID string, month, day time.Time) (all []limit.Moved, err error) {
	var rows []movedRow
	if err := scan(ctx, s.db, movedOf(s.db.Conn(ctx), userID, month, day), &rows); err != nil {
		return nil, err
	}
	for _, r := range rows { // the days before come first
		if n := len(all); n == 0 || all[n-1].Asset != r.AssetID || all[n-1].Received != r.Received {
			all = append(all, limit.Moved{Asset: r.AssetID, Received: r.Received})
		}
		m := &all[len(all)-1]
		sum, err := r.amount()
		total, tooLarge := m.Month.Add(sum)
		if m.Over = m.Over || err != nil || tooLarge != nil; m.Over {
			continue
		}
		if m.Month = total; r.Today {
			m.Today = sum
		}
	}
	return all, nil
}

type Levels struct{ db *engine.DB }

var _ level.Store = Levels{}

func NewLevels(db *engine.DB) Levels { return Levels{db} }

type levelRow struct {
	bun.BaseModel `bun:"table:user_level,alias:l"`

	ID      int64 `bun:",pk"`
	Label   string
	Special bool
	Limits  record.JSON[level.Limits]
}

var levels = record.Of(record.Table[levelRow, level.Level]{
	Fixed:  []string{"id"},
	Absent: "there is no such level",
}, nil)

func (s Levels) List(ctx context.Context, q level.Query) ([]level.Level, error) {
	return levels.List(ctx, s.db, record.Part{Where: []record.Filter{record.Sent("special", q.Special)}})
}

// Add inserts a level under the number that it has.
func (s Levels) Add(ctx context.Context, l level.Level) error {
	row := levels.Row(l)
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&row).Exec(ctx)
		return err
	})
}

// Change changes a level as one step: a second change waits for this one.
func (s Levels) Change(ctx context.Context, id int64, f func(level.Level) (level.Level, error)) error {
	return record.Write(ctx, s.db, func(ctx context.Context, _ bun.IDB) error {
		l, err := levels.Lock(ctx, s.db, record.Is("id", id))
		if err == nil {
			l, err = f(l)
		}
		if err != nil {
			return err
		}
		return levels.Save(ctx, s.db, l, record.Is("id", id))
	})
}
