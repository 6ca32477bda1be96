package persistence

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/change"
	"castellan/persistence/engine"
)

// Changes implements change.Store.
type Changes struct{ db *DB }

var _ change.Store = Changes{}

// NewChanges returns the feed kept in db.
func NewChanges(db *DB) Changes { return Changes{db} }

type changeRow struct {
	bun.BaseModel `bun:"table:change,alias:g"`

	ID    int64 `bun:",pk,autoincrement"`
	Topic string
	Key   string
	At    int64
}

func changeWrites(now func() time.Time) []engine.Kind {
	return []engine.Kind{
		engine.Insert(func(n change.Note) changeRow {
			return changeRow{Topic: string(n.Topic), Key: n.Key, At: ms(now())}
		}),
	}
}

// Since implements change.Store.
func (s Changes) Since(ctx context.Context, from time.Time) ([]change.Entry, error) {
	// Only the caller bounds this read: the circuit breaker learns from it whether
	// the database answers.
	done := s.db.Watch()
	var rows []changeRow
	err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("at >= ?", ms(from)).Order("id").Scan(ctx)
	done(err == nil)
	out := make([]change.Entry, len(rows))
	for i, r := range rows {
		out[i] = change.Entry{ID: r.ID, Note: change.Note{Topic: change.Topic(r.Topic), Key: r.Key}, At: at(r.At)}
	}
	return out, translate(err)
}

// Purge implements change.Store.
func (s Changes) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "change", "id", "at < ?", ms(before))
}
