package engine

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// concurrent is an index of a migration of PostgreSQL that may be built while other processes write to its table. Such
// a migration has nothing else.
var concurrent = regexp.MustCompile(`CREATE INDEX CONCURRENTLY IF NOT EXISTS (\w+)\s+ON (\w+)[^;]*`)

// deferred reports whether a migration is left to BuildIndexes, because an index is of a table with rows.
func deferred(ctx context.Context, tx bun.Tx, text string) (bool, error) {
	for _, index := range concurrent.FindAllStringSubmatch(text, -1) {
		var rows bool
		err := tx.NewRaw("SELECT EXISTS (SELECT 1 FROM ?)", bun.Ident(index[2])).Scan(ctx, &rows)
		if err != nil || rows {
			return rows, err
		}
	}
	return false, nil
}

// indexTurn is how often a process looks whether another one has built the indexes.
const indexTurn = time.Second

// BuildIndexes builds the indexes that Migrate has deferred, while this program and earlier ones serve, and returns the
// names of their migrations. One process builds at a time, and the others wait. Call it outside of Exclusive: the
// server waits for each older statement, also for one that waits for that lock. A statement has no limit of time.
func (db *DB) BuildIndexes(ctx context.Context, migrations fs.FS) (built []string, err error) {
	if pending, err := db.Pending(ctx, migrations); !db.Postgres() || err != nil || len(pending) == 0 {
		return nil, err
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, Translate(err)
	}
	defer conn.Close()
	const key = 0x696e6465786573 // "indexes"
	for mine := false; ; {
		if err := conn.NewRaw("SELECT pg_try_advisory_lock(?)", key).Scan(ctx, &mine); err != nil {
			return nil, Translate(err)
		}
		if mine {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(indexTurn):
		}
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(?)", key)
	pending, err := db.Pending(ctx, migrations)
	if err != nil {
		return nil, err
	}
	files, err := MigrationsOf(migrations, db.Postgres())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := f.Name
		indexes := concurrent.FindAllStringSubmatch(f.Text, -1)
		if indexes == nil || !slices.Contains(pending, name) {
			continue
		}
		for _, index := range indexes {
			if err := build(ctx, conn, index[1], index[0]); err != nil {
				return built, fmt.Errorf("build the index %s: %w", index[1], Translate(err))
			}
		}
		row := map[string]any{"name": name, "applied_at": Millis(db.now())}
		if _, err := conn.NewInsert().Table("schema_migrations").Model(&row).Exec(ctx); err != nil {
			return built, fmt.Errorf("migrate %s: %w", name, Translate(err))
		}
		built = append(built, name)
	}
	return built, nil
}

// build builds an index, from the beginning if an attempt was interrupted.
func build(ctx context.Context, conn bun.Conn, name, statement string) error {
	var broken bool
	err := conn.NewRaw("SELECT EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(?) AND NOT indisvalid)",
		name).Scan(ctx, &broken)
	if err == nil && broken {
		_, err = conn.Conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name)
	}
	if err == nil {
		_, err = conn.Conn.ExecContext(ctx, statement)
	}
	return err
}

// atOnce is the text of a migration as it runs in a transaction.
func atOnce(text string) string { return strings.ReplaceAll(text, " CONCURRENTLY ", " ") }
