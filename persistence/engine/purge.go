package engine

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Rows that nobody can ask for any more are found by a range of an index, or in a
// part of the table, and removed so few at a time that no request waits long for
// them. What is not done in purgeTime is left for the next time, so that one
// table's flood does not keep another from being looked after. On SQLite all of it
// is done on the writing connection: it takes milliseconds, and the pages that it
// reads would fill the cache of one more.
const (
	PurgeBatch = 250
	purgeTime  = 5 * time.Second
	PurgeLook  = 5000 // rows of a table without an index for their age
)

// purge removes the rows of a table for which a condition holds. It is asked
// again and again, so it must be answered by a range of an index.
func (db *DB) Purge(ctx context.Context, table, key, where string, args ...any) error {
	for end := time.Now().Add(purgeTime); ; {
		var keys []string
		err := db.InTx(ctx, func(ctx context.Context) error {
			tx := db.Conn(ctx)
			err := tx.NewSelect().Table(table).Column(key).Where(where, args...).Limit(PurgeBatch).Scan(ctx, &keys)
			if err == nil && len(keys) > 0 {
				// The condition once more: on PostgreSQL a row may have moved on.
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

// purgePart is purge by a condition for which there is no index, because it
// would cost every login more than it is worth: each time the next part of the
// table, by its ids, is looked through.
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
