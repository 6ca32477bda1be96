package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// openSQLiteReadOnly opens an existing file. It creates no folder and no file and never writes.
func (db *DB) openSQLiteReadOnly(path string, o Options) error {
	file, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	name := sqliteName(file, "query_only(1)") + "&mode=ro"
	if _, err := os.Stat(file + "-wal"); errors.Is(err, fs.ErrNotExist) {
		// No process has the file open. SQLite would create a log and an index beside it, owned by the user of this
		// process.
		name += "&immutable=1"
	}
	r, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	r.SetMaxOpenConns(o.MaxConns)
	db.file = file
	db.read = newBun(r, sqlitedialect.New())
	db.write, db.executor = db.read, &sqliteExecutor{db: r}
	return nil
}

// Pending names the migrations of this program that the database lacks. It writes nothing.
func (db *DB) Pending(ctx context.Context, migrations fs.FS) (pending []string, err error) {
	files, err := fs.Glob(migrations, db.migrationsDir()+"/*.sql")
	if err != nil {
		return nil, err
	}
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	there := false
	query := "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations')"
	if db.Postgres() {
		query = "SELECT to_regclass('schema_migrations') IS NOT NULL"
	}
	var done []string
	if err = db.read.DB.QueryRowContext(ctx, query).Scan(&there); err == nil && there {
		err = db.read.NewSelect().Table("schema_migrations").Column("name").Scan(ctx, &done)
	}
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", Translate(err))
	}
	for _, f := range files {
		if name := path.Base(f); !slices.Contains(done, name) {
			pending = append(pending, name)
		}
	}
	return pending, nil
}

// Facts are a database's properties.
type Facts struct {
	Now      time.Time // the clock of the server; zero for SQLite, which uses the clock of this machine
	ReadOnly bool      // writes are refused
	// Lossy names settings of the server that can lose or damage committed data in a crash.
	Lossy []string
}

// Facts queries the properties of the database. It writes nothing.
func (db *DB) Facts(ctx context.Context) (f Facts, err error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	if !db.Postgres() {
		file, err := os.OpenFile(db.file, os.O_RDWR, 0)
		if err != nil {
			f.ReadOnly = true
			return f, nil
		}
		return f, file.Close()
	}
	var seconds float64
	var recovery, readOnly bool
	var fsync, pages string
	err = db.read.DB.QueryRowContext(ctx, "SELECT extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery(), "+
		"current_setting('transaction_read_only') = 'on', current_setting('fsync'), current_setting('full_page_writes')").
		Scan(&seconds, &recovery, &readOnly, &fsync, &pages)
	if err != nil {
		return f, fmt.Errorf("read the settings of the server: %w", Translate(err))
	}
	f.Now = time.UnixMicro(int64(seconds * 1e6))
	// The sessions of a DB that was opened read-only are always read-only.
	f.ReadOnly = recovery || readOnly && !db.readOnly || db.serverReadOnly.Load()
	if fsync != "on" {
		f.Lossy = append(f.Lossy, "fsync")
	}
	if pages != "on" {
		f.Lossy = append(f.Lossy, "full_page_writes")
	}
	return f, nil
}
