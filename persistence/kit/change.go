package kit

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/change"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Changes struct{ db *engine.DB }

func NewChanges(db *engine.DB) change.Store { return Changes{db} }

type changeRow struct {
	bun.BaseModel `bun:"table:change,alias:g"`

	ID    int64 `bun:",pk,autoincrement"`
	Topic string
	Key   string
	At    int64
}

func ChangeWrites(now func() time.Time) []engine.Kind {
	return []engine.Kind{
		engine.Insert(func(n change.Note) changeRow {
			return changeRow{Topic: string(n.Topic), Key: n.Key, At: engine.Millis(now())}
		}),
	}
}

func (s Changes) Since(ctx context.Context, from time.Time) ([]change.Entry, error) {
	// Only the caller bounds this read: the circuit breaker learns from it whether
	// the database answers.
	done := s.db.Watch()
	var rows []changeRow
	err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("at >= ?", engine.Millis(from)).Order("id").Scan(ctx)
	done(err == nil)
	return record.Each(rows, func(r changeRow) change.Entry {
		return change.Entry{ID: r.ID, Note: change.Note{Topic: change.Topic(r.Topic), Key: r.Key}, At: engine.Time(r.At)}
	}), engine.Translate(err)
}

func (s Changes) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "change", "id", "at < ?", engine.Millis(before))
}
