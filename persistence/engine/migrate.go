package engine

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"sort"
)

// Migrate migrates the schema to this program's version. It applies, in order and in one transaction, every one of
// MigrationsOf that was not applied yet. Call it inside Exclusive. It returns the names of the applied files. A
// statement has Patience. On PostgreSQL, indexes of tables with rows are left to BuildIndexes. The schema of the next
// release is not changed: this program works with it. A schema that is two releases ahead is an error: see
// releasesAhead.
func (db *DB) Migrate(ctx context.Context, migrations fs.FS) (applied []string, err error) {
	files, err := MigrationsOf(migrations, db.Postgres())
	if err != nil {
		return nil, err
	}
	defer db.logSlowWait().Stop()
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, Translate(err)
	}
	defer tx.Rollback()
	// The text goes to the driver unchanged: bun would interpret a ? in it.
	exec := func(text string) error {
		ctx, cancel := db.boundPatiently(ctx)
		defer cancel()
		_, err := tx.Tx.ExecContext(ctx, text)
		return Translate(err)
	}
	there := false
	if db.Postgres() { // IF NOT EXISTS needs the privilege to create, which the service may lack
		err = tx.Tx.QueryRowContext(ctx, "SELECT to_regclass('schema_migrations') IS NOT NULL").Scan(&there)
	}
	if err == nil && !there {
		err = exec("CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)")
	}
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", Translate(err))
	}
	var done []string
	if err := tx.NewSelect().Table("schema_migrations").Column("name").Scan(ctx, &done); err != nil {
		return nil, fmt.Errorf("migrate: %w", Translate(err))
	}
	if ahead := releasesAhead(done, files); len(ahead) > 1 {
		return nil, fmt.Errorf("migrate: the database has the schema of release %s, and this program works with that of %s "+
			"at most: start a program of that release", ahead[len(ahead)-1], ahead[0])
	}
	for _, f := range files {
		name, text := f.Name, f.Text
		if slices.Contains(done, name) {
			continue
		}
		if later, err := deferred(ctx, tx, text); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", name, Translate(err))
		} else if later {
			continue
		}
		if err := exec(atOnce(text)); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", name, err)
		}
		row := map[string]any{"name": name, "applied_at": Millis(db.now())}
		if _, err := tx.NewInsert().Table("schema_migrations").Model(&row).Exec(ctx); err != nil {
			return nil, fmt.Errorf("migrate %s: %w", name, Translate(err))
		}
		applied = append(applied, name)
	}
	return applied, Translate(tx.Commit())
}

var marker = regexp.MustCompile(`^\d+_release_(\d+)_(\d+)\.sql$`)

// releasesAhead returns the releases, oldest first, whose markers are in a database and unknown to this program. The
// marker of release 0.10 is a migration named like 0131_release_0_10.sql.
func releasesAhead(done []string, files []Migration) (ahead []string) {
	slices.Sort(done)
	for _, name := range done {
		m := marker.FindStringSubmatch(name)
		if m != nil && !slices.ContainsFunc(files, func(f Migration) bool { return f.Name == name }) {
			ahead = append(ahead, m[1]+"."+m[2])
		}
	}
	return ahead
}

// Migration is a file of statements that changes the schema once.
type Migration struct{ Name, Text string }

// MigrationsOf returns the migrations of one kind of database, by name. A file of migrations/both serves both kinds: it
// has the words of SQLite, and forPostgres says which of them differ. Files of migrations/sqlite and
// migrations/postgres have pairs of the same name.
func MigrationsOf(migrations fs.FS, postgres bool) (all []Migration, err error) {
	own := "migrations/sqlite"
	if postgres {
		own = "migrations/postgres"
	}
	for _, folder := range []string{own, "migrations/both"} {
		files, err := fs.Glob(migrations, folder+"/*.sql")
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := fs.ReadFile(migrations, f)
			if err != nil {
				return nil, err
			}
			m := Migration{path.Base(f), string(text)}
			switch {
			case !postgres:
				m.Text = atOnce(m.Text) // SQLite has one writer
			case folder != own:
				m.Text = forPostgres(m.Text)
			}
			all = append(all, m)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

var words = regexp.MustCompile(`INTEGER PRIMARY KEY AUTOINCREMENT|\bINTEGER\b|\bBLOB\b|\) (?:STRICT|WITHOUT ROWID);`)

// forPostgres replaces the words of SQLite that PostgreSQL lacks.
func forPostgres(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		switch word {
		case "INTEGER PRIMARY KEY AUTOINCREMENT":
			return "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
		case "INTEGER":
			return "BIGINT"
		case "BLOB":
			return "BYTEA"
		}
		return ");"
	})
}

// Seeded reports whether Once ran the seed with a name.
func (db *DB) Seeded(ctx context.Context, name string) (bool, error) {
	n, err := db.read.NewSelect().Table("seed").Where("name = ?", name).Count(ctx)
	return n > 0, Translate(err)
}

// SeedsOf returns the seeds that Once ran and whose names begin with a text.
func (db *DB) SeedsOf(ctx context.Context, prefix string) (names []string, err error) {
	err = db.read.NewSelect().Table("seed").Column("name").Where("substr(name, 1, ?) = ?", len(prefix), prefix).
		Order("name").Scan(ctx, &names)
	return names, Translate(err)
}

// Once runs seed in one transaction with a marker row of its name, on the first call; afterwards it does nothing. Call
// it inside Exclusive.
func (db *DB) Once(ctx context.Context, name string, seed func(ctx context.Context) error) (ran bool, err error) {
	if done, err := db.Seeded(ctx, name); err != nil || done {
		return false, err
	}
	return true, db.InTx(ctx, func(ctx context.Context) error {
		marker := map[string]any{"name": name, "at": Millis(db.now())}
		if _, err := db.Conn(ctx).NewInsert().Table("seed").Model(&marker).Exec(ctx); err != nil {
			return Translate(err)
		}
		return seed(ctx)
	})
}
