package persistence

import (
	"context"
)

// recordRow is a row R of an administered slice that stands for a record T; take
// sets what of T may change.
type recordRow[R, T any] interface {
	*R
	record() (T, error)
	take(T) error
}

// rowsByID reads all rows of a table in the order of their ids.
func rowsByID[R any](ctx context.Context, db *DB) (rows []R, err error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	err = db.Conn(ctx).NewSelect().Model(&rows).Order("id").Scan(ctx)
	return rows, translate(err)
}

func listRecords[R, T any, P recordRow[R, T]](ctx context.Context, db *DB) ([]T, error) {
	rows, err := rowsByID[R](ctx, db)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(rows))
	for i := range rows {
		if out[i], err = P(&rows[i]).record(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func addRecord[R, T any, P recordRow[R, T]](ctx context.Context, db *DB, row P, record T) (id int64, err error) {
	if err := row.take(record); err != nil {
		return 0, err
	}
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	err = db.InTx(ctx, func(ctx context.Context) error {
		return db.Conn(ctx).NewInsert().Model(row).Returning("id").Scan(ctx, &id)
	})
	return id, translate(err)
}

// changeRecord stamps the row before it reads it, in one statement: that makes a
// second change wait for this one, in words that both databases know.
func changeRecord[R, T any, P recordRow[R, T]](ctx context.Context, db *DB, change func(T) (T, error), where string, args ...any) error {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	return translate(db.InTx(ctx, func(ctx context.Context) error {
		row := P(new(R))
		if err := db.Conn(ctx).NewUpdate().Model(row).Set("updated_at = ?", ms(db.Now())).Where(where, args...).Returning("*").Scan(ctx); err != nil {
			return err
		}
		record, err := row.record()
		if err != nil {
			return err
		}
		if record, err = change(record); err != nil {
			return err
		}
		if err := row.take(record); err != nil {
			return err
		}
		_, err = db.Conn(ctx).NewUpdate().Model(row).WherePK().Exec(ctx)
		return err
	}))
}
