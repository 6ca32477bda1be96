package money

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type restoredRow struct {
	bun.BaseModel `bun:"table:restore_withdrawal,alias:r"`

	ID        string `bun:",pk"`
	Status    int
	Outcome   string // "" until it was compared
	SettledAt int64
}

func (s Transactions) Restored(ctx context.Context, id string) (open, waits bool, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	err = s.db.Conn(ctx).NewRaw("SELECT EXISTS (SELECT 1 FROM restore WHERE finished_at = 0), "+
		"EXISTS (SELECT 1 FROM restore_withdrawal WHERE id = ? AND outcome = '')", id).Scan(ctx, &open, &waits)
	return open, waits, engine.Translate(err)
}

func (s Transactions) Uncompared(ctx context.Context) (all []transaction.Uncompared, err error) {
	var rows []restoredRow
	if err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("outcome = ''").Order("id").Scan(ctx); err != nil {
		return nil, engine.Translate(err)
	}
	for _, r := range rows {
		q, err := s.Queued(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, transaction.Uncompared{Queued: q, Former: transaction.QueueStatus(r.Status)})
	}
	return all, nil
}

func (s Transactions) Compared(ctx context.Context, id string, sent bool, now time.Time) error {
	outcome := transaction.MarkedUnsent
	if sent {
		outcome = transaction.MarkedSent
	}
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewUpdate().Model((*restoredRow)(nil)).Set("outcome = ?", string(outcome)).
			Set("settled_at = ?", engine.Millis(now)).Where("id = ?", id).Exec(ctx)
		return err
	})
}

func (s Transactions) Finished(ctx context.Context, now time.Time) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewUpdate().Table("restore").Set("finished_at = ?", engine.Millis(now)).Where("finished_at = 0").
			Exec(ctx)
		return err
	})
}
