package kit

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// It needs no started writer: keys are made
// before there is one, since they hold the key of its audit chain.
type Keys struct{ db *engine.DB }

var _ keyring.Store = Keys{}

func NewKeys(db *engine.DB) Keys { return Keys{db} }

type keyRow struct {
	bun.BaseModel `bun:"table:keys,alias:k"`

	ID        string `bun:",pk"`
	Purpose   string
	Seq       int64
	CreatedAt int64
	NotBefore int64
	RetiredAt int64
	Wrapped   []byte
	MasterID  string
}

var keyRecords = record.Of(record.Table[keyRow, keyring.Record]{Order: record.Keyset{Columns: "purpose, seq"}}, nil)

func (s Keys) Keys(ctx context.Context) ([]keyring.Record, error) {
	return keyRecords.List(ctx, s.db, record.Part{})
}

func (s Keys) Add(ctx context.Context, records ...keyring.Record) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error { return addKeys(ctx, tx, records) })
}

func (s Keys) Rotate(ctx context.Context, next keyring.Record, retired ...keyring.Record) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, r := range retired {
			retire := tx.NewUpdate().Model((*keyRow)(nil)).Set("retired_at = ?", engine.Millis(r.RetiredAt)).Where("id = ?",
				r.ID)
			if err := record.OneRow(retire.Exec(ctx)); err != nil {
				return err
			}
		}
		return addKeys(ctx, tx, []keyring.Record{next})
	})
}

func (s Keys) Rewrap(ctx context.Context, from string, records []keyring.Record) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, r := range records {
			err := record.OneRow(tx.NewUpdate().Model((*keyRow)(nil)).Set("wrapped = ?", r.Wrapped).
				Set("master_id = ?", r.MasterID).Where("id = ?", r.ID).Where("master_id = ?", from).Exec(ctx))
			if errors.Is(err, sql.ErrNoRows) {
				err = fault.New(fault.InvalidState, "the keys have changed")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Held tells what is stored for long under each hashing key: how many accounts have
// recovery codes that were not used, and how many scheduled clients a key.
func (s Keys) Held(ctx context.Context) (recovery, cron map[string]int, err error) {
	count := func(table, column, where string) (map[string]int, error) {
		var rows []struct {
			HashKey string
			N       int
		}
		err := s.db.Conn(ctx).NewSelect().Table(table).Column("hash_key").ColumnExpr(column+" AS n").Where(where).
			Group("hash_key").Scan(ctx, &rows)
		held := map[string]int{}
		for _, r := range rows {
			held[r.HashKey] = r.N
		}
		return held, engine.Translate(err)
	}
	if recovery, err = count("recovery_code", "COUNT(DISTINCT user_id)", "used_at = 0"); err != nil {
		return nil, nil, err
	}
	cron, err = count("cron_key", "COUNT(*)", "1 = 1")
	return recovery, cron, err
}

func addKeys(ctx context.Context, tx bun.IDB, records []keyring.Record) error {
	rows := make([]keyRow, len(records))
	for i, r := range records {
		rows[i] = keyRecords.Row(r)
	}
	_, err := tx.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// change runs do in a transaction that overlaps no other change of keys, makes
// sure that one master key wraps all of them afterwards, and tells the nodes.
func (s Keys) change(ctx context.Context, do func(context.Context, bun.IDB) error) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		if s.db.Postgres() { // SQLite has one writer
			if _, err := tx.ExecContext(ctx, "LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		masters, err := tx.NewSelect().Model((*keyRow)(nil)).Distinct().Column("master_id").Count(ctx)
		if err != nil {
			return err
		}
		if masters > 1 {
			return fault.New(fault.InvalidState, "the keys are wrapped by another master key")
		}
		return s.db.Commit(ctx, change.Note{Topic: change.Keys})
	})
}
