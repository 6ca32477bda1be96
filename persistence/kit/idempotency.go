package kit

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/idempotency"
	"castellan/persistence/engine"
)

type Idempotency struct{ db *engine.DB }

func NewIdempotency(db *engine.DB) idempotency.Store { return Idempotency{db} }

type idempotencyRow struct {
	bun.BaseModel `bun:"table:idempotency,alias:i"`

	ID        string `bun:",pk"`
	BodyHash  []byte
	CreatedAt int64
	Sealed    []byte
}

var IdempotencyWrites = []engine.Kind{
	engine.Insert(func(s idempotency.Save) idempotencyRow {
		return idempotencyRow{ID: s.ID, BodyHash: s.BodyHash[:], CreatedAt: engine.Millis(s.At), Sealed: s.Sealed}
	}),
}

func (s Idempotency) Find(ctx context.Context, id string, since time.Time) (idempotency.Record, error) {
	var r idempotencyRow
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model(&r).Where("id = ?", id).
		Where("created_at >= ?", engine.Millis(since)))
	out := idempotency.Record{ID: r.ID, At: engine.Time(r.CreatedAt), Sealed: r.Sealed}
	copy(out.BodyHash[:], r.BodyHash)
	return out, err
}

func (s Idempotency) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "idempotency", "id", "created_at < ?", engine.Millis(before))
}
