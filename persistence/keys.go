package persistence

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"castellan/domain/change"
	"castellan/domain/fault"
	"castellan/domain/keyring"
)

// Keys implements keyring.Store. It needs no started writer: keys are made
// before there is one, since they hold the key of its audit chain.
type Keys struct{ db *DB }

var _ keyring.Store = Keys{}

// NewKeys returns the keys kept in db.
func NewKeys(db *DB) Keys { return Keys{db} }

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

func rowOfKey(r keyring.Record) keyRow {
	return keyRow{ID: r.ID, Purpose: string(r.Purpose), Seq: r.Seq, CreatedAt: ms(r.CreatedAt), NotBefore: ms(r.NotBefore),
		RetiredAt: ms(r.RetiredAt), Wrapped: r.Wrapped, MasterID: r.MasterID}
}

func (r keyRow) record() keyring.Record {
	return keyring.Record{ID: r.ID, Purpose: keyring.Purpose(r.Purpose), Seq: r.Seq, CreatedAt: at(r.CreatedAt), NotBefore: at(r.NotBefore),
		RetiredAt: at(r.RetiredAt), Wrapped: r.Wrapped, MasterID: r.MasterID}
}

// Keys implements keyring.Store.
func (s Keys) Keys(ctx context.Context) ([]keyring.Record, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []keyRow
	err := s.db.Conn(ctx).NewSelect().Model(&rows).Order("purpose", "seq").Scan(ctx)
	out := make([]keyring.Record, len(rows))
	for i, r := range rows {
		out[i] = r.record()
	}
	return out, translate(err)
}

// Add implements keyring.Store.
func (s Keys) Add(ctx context.Context, records ...keyring.Record) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error { return addKeys(ctx, tx, records) })
}

// Rotate implements keyring.Store.
func (s Keys) Rotate(ctx context.Context, next keyring.Record, retired ...keyring.Record) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, r := range retired {
			res, err := tx.NewUpdate().Model((*keyRow)(nil)).Set("retired_at = ?", ms(r.RetiredAt)).Where("id = ?", r.ID).Exec(ctx)
			if err := oneRow(res, err, fault.New(fault.RecordNotFound, "no such key")); err != nil {
				return err
			}
		}
		return addKeys(ctx, tx, []keyring.Record{next})
	})
}

// Rewrap implements keyring.Store.
func (s Keys) Rewrap(ctx context.Context, from string, records []keyring.Record) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, r := range records {
			res, err := tx.NewUpdate().Model((*keyRow)(nil)).Set("wrapped = ?", r.Wrapped).Set("master_id = ?", r.MasterID).
				Where("id = ?", r.ID).Where("master_id = ?", from).Exec(ctx)
			if err := oneRow(res, err, fault.New(fault.InvalidState, "the keys have changed meanwhile")); err != nil {
				return err
			}
		}
		return nil
	})
}

// oneRow is err, or missing unless a statement touched exactly one row.
func oneRow(res sql.Result, err, missing error) error {
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = missing
	}
	return err
}

func addKeys(ctx context.Context, tx bun.IDB, records []keyring.Record) error {
	rows := make([]keyRow, len(records))
	for i, r := range records {
		rows[i] = rowOfKey(r)
	}
	_, err := tx.NewInsert().Model(&rows).Exec(ctx)
	return err
}

// change runs do in a transaction that no other change of keys overlaps, sees
// to it that one master key wraps all of them afterwards, and tells the nodes.
func (s Keys) change(ctx context.Context, do func(context.Context, bun.IDB) error) error {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	return s.db.InTx(ctx, func(ctx context.Context) error {
		tx := s.db.Conn(ctx)
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
