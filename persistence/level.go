package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/money/level"
	"castellan/persistence/engine"
)

type Levels struct{ db *DB }

var _ level.Store = Levels{}

// NewLevels returns the levels kept in db.
func NewLevels(db *DB) Levels { return Levels{db} }

type levelRow struct {
	bun.BaseModel `bun:"table:user_level,alias:l"`

	ID      int64 `bun:",pk"`
	Label   string
	Special bool
	Limits  string // JSON
}

var levels = table[levelRow, level.Level]{
	fixed:  []string{"id"},
	absent: "there is no such level",
	record: func(r levelRow) (level.Level, error) {
		l := level.Level{ID: r.ID, Label: r.Label, Special: r.Special}
		err := engine.ReadJSON(r.Limits, &l.Limits)
		return l, err
	},
	row: func(l level.Level) levelRow {
		return levelRow{ID: l.ID, Label: l.Label, Special: l.Special, Limits: body(l.Limits)}
	},
}

func (s Levels) List(ctx context.Context, q level.Query) ([]level.Level, error) {
	return levels.list(ctx, s.db, part{where: []filter{sent("special", q.Special)}})
}

// Add inserts a level under the number that it has.
func (s Levels) Add(ctx context.Context, l level.Level) error {
	row := levels.row(l)
	return write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&row).Exec(ctx)
		return err
	})
}

// Change changes a level as one step. The first statement locks the row: a second change
// waits for this one.
func (s Levels) Change(ctx context.Context, id int64, f func(level.Level) (level.Level, error)) error {
	return write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		var row levelRow
		lock := tx.NewUpdate().Model(&row).Set("special = special").Where("id = ?", id).Returning("*")
		if err := lock.Scan(ctx); err != nil {
			return levels.translate(err)
		}
		l, err := levels.record(row)
		if err != nil {
			return err
		}
		if l, err = f(l); err != nil {
			return err
		}
		return levels.save(ctx, s.db, l, is("id", id))
	})
}
