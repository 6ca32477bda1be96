package persistence

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
)

//go:embed migrations
var migrations embed.FS

// Migrate brings the schema to this program's version: it applies, in order
// and in one transaction, every file that was not applied yet. Call it inside
// Exclusive. It reports the names it applied. A schema made by a newer
// program is left as it is: one version back works with it.
func (db *DB) Migrate(ctx context.Context) (applied []string, err error) {
	dir := "migrations/sqlite"
	if db.postgres() {
		dir = "migrations/postgres"
	}
	files, err := fs.Glob(migrations, dir+"/*.sql") // sorted by number
	if err != nil {
		return nil, err
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, translate(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)"); err != nil {
		return nil, fmt.Errorf("migrate: %w", translate(err))
	}
	var done []string
	if err := tx.NewSelect().Table("schema_migrations").Column("name").Scan(ctx, &done); err != nil {
		return nil, fmt.Errorf("migrate: %w", translate(err))
	}
	have := map[string]bool{}
	for _, n := range done {
		have[n] = true
	}
	for _, f := range files {
		name := path.Base(f)
		if have[name] {
			continue
		}
		text, err := fs.ReadFile(migrations, f)
		if err != nil {
			return nil, err
		}
		// The text goes to the driver as it is: bun would read a ? in it.
		if _, err := tx.Tx.ExecContext(ctx, string(text)); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", name, translate(err))
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO schema_migrations (name, applied_at) VALUES (?, ?)", name, db.now().UnixMilli()); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", name, translate(err))
		}
		applied = append(applied, name)
	}
	return applied, translate(tx.Commit())
}

// Seeded tells whether Once ran the seed of a name.
func (db *DB) Seeded(ctx context.Context, name string) (bool, error) {
	n, err := db.read.NewSelect().Table("seed").Where("name = ?", name).Count(ctx)
	return n > 0, translate(err)
}

// Once runs seed in one transaction with a marker row of its name, the first
// time it is asked to; afterwards it does nothing. Call it inside Exclusive.
func (db *DB) Once(ctx context.Context, name string, seed func(ctx context.Context) error) (ran bool, err error) {
	if done, err := db.Seeded(ctx, name); err != nil || done {
		return false, err
	}
	return true, db.InTx(ctx, func(ctx context.Context) error {
		if _, err := db.conn(ctx).NewInsert().Table("seed").Model(&map[string]any{"name": name, "at": db.now().UnixMilli()}).Exec(ctx); err != nil {
			return translate(err)
		}
		return seed(ctx)
	})
}
