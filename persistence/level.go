package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/level"
	"castellan/persistence/engine"
)

// Levels implements level.Store.
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
	record: func(r levelRow) (level.Level, error) {
		l := level.Level{ID: r.ID, Label: r.Label, Special: r.Special}
		err := engine.ReadJSON(r.Limits, &l.Limits)
		return l, err
	},
}

// List implements level.Store.
func (s Levels) List(ctx context.Context, q level.Query) ([]level.Level, error) {
	return levels.list(ctx, s.db, part{where: []filter{sent("special", q.Special)}})
}
