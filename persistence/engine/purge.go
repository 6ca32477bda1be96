package engine

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Rows that no client can request any more are found by a range of an index, or in a part of the table. They are
// removed in small batches, so that no request waits long for them. After purgeTime the rest is left for the next time,
// so one flooded table does not delay the others. On SQLite all of it runs on the writing connection: it takes
// milliseconds, and a separate connection would need its own cache.
const (
	PurgeBatch = 250
	purgeTime  = 5 * time.Second
	PurgeLook  = 5000 // rows of a table without an index for their age
)

// Purge removes the rows of a table for which a condition holds. The condition is evaluated repeatedly, so it must be a
// range of an index.
func (db *DB) Purge(ctx context.Context, table, key, where string, args ...any) error {
	return db.PurgeAfter(ctx, "", table, key, where, args...)
}

// PurgeAfter is Purge that first copies rows in the same transaction: copying is a statement with one placeholder, the
// list of the keys that are about to be removed. "" copies nothing.
func (db *DB) PurgeAfter(ctx context.Context, copying, table, key, where string, args ...any) error {
	for end := time.Now().Add(purgeTime); ; {
		var keys []string
		err := db.InTx(ctx, func(ctx context.Context) error {
			tx := db.Conn(ctx)
			err := tx.NewSelect().Table(table).Column(key).Where(where, args...).Limit(PurgeBatch).Scan(ctx, &keys)
			if err == nil && len(keys) > 0 && copying != "" {
				_, err = tx.NewRaw(copying, bun.List(keys)).Exec(ctx)
			}
			if err == nil && len(keys) > 0 {
				// The condition once more: on PostgreSQL a row may have changed.
				_, err = tx.NewDelete().Table(table).Where("? IN (?)", bun.Ident(key), bun.List(keys)).
					Where(where, args...).Exec(ctx)
			}
			return err
		})
		if err != nil || len(keys) < PurgeBatch || time.Now().After(end) {
			return Translate(err)
		}
	}
}

// PurgePart is Purge by a condition without an index, if an index would cost every login more than it is worth. Each
// call checks the next part of the table, by its ids.
func (db *DB) PurgePart(ctx context.Context, table, where string, args ...any) error {
	from, _ := db.purged.Load(table)
	if from == nil {
		from = ""
	}
	var part struct {
		N    int
		Last string
	}
	err := db.InTx(ctx, func(ctx context.Context) error {
		tx := db.Conn(ctx)
		next := tx.NewSelect().Table(table).Column("id").Where("id > ?", from).Order("id").Limit(PurgeLook)
		return tx.NewSelect().TableExpr("(?) AS part", next).ColumnExpr("COUNT(*) AS n").
			ColumnExpr("COALESCE(MAX(id), '') AS last").Scan(ctx, &part)
	})
	if err != nil {
		return Translate(err)
	}
	if part.N < PurgeLook {
		db.purged.Delete(table) // from the beginning
	} else {
		db.purged.Store(table, part.Last)
	}
	return db.Purge(ctx, table, "id", "id > ? AND id <= ? AND "+where, append([]any{from, part.Last}, args...)...)
}
