package money

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/money/level"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Levels struct{ db *engine.DB }

var _ level.Store = Levels{}

// NewLevels returns the levels kept in db.
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

// Change changes a level as one step. The first statement locks the row: a second change
// waits for this one.
func (s Levels) Change(ctx context.Context, id int64, f func(level.Level) (level.Level, error)) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		var row levelRow
		lock := tx.NewUpdate().Model(&row).Set("special = special").Where("id = ?", id).Returning("*")
		if err := lock.Scan(ctx); err != nil {
			return levels.Translate(err)
		}
		l, err := levels.Record(row)
		if err != nil {
			return err
		}
		if l, err = f(l); err != nil {
			return err
		}
		return levels.Save(ctx, s.db, l, record.Is("id", id))
	})
}
