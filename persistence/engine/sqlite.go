package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/uptrace/bun/dialect/sqlitedialect"
)

func (db *DB) openSQLite(path string, o Options) error {
	if o.ReadOnly {
		return db.openSQLiteReadOnly(path, o)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if unfinished, err := exists(file + stagedSuffix); err != nil {
		return err
	} else if unfinished {
		return ErrUnfinished
	}
	if o.Serves {
		if db.serving, err = serveAlone(file); err != nil {
			return err
		}
	}
	// The log and the index beside the file get its mode, which SQLite would leave to the umask.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	name := func(pragmas ...string) string { return sqliteName(file, pragmas...) }
	r, err := sql.Open("sqlite", name("query_only(1)"))
	if err != nil {
		return err
	}
	r.SetMaxOpenConns(o.MaxConns)
	r.SetMaxIdleConns(o.MaxConns)
	// The writer comes first: it creates the file and puts it in WAL mode. A page that many commits write is copied
	// into the file once per checkpoint, so checkpoints are rarer than by default, at 16 MiB of log.
	w := sql.OpenDB(&sqliteConnector{db: db, driver: r.Driver(), name: name("journal_mode(WAL)", "synchronous(FULL)",
		"wal_autocheckpoint(4000)", "foreign_keys(1)", "temp_store(MEMORY)")})
	w.SetMaxOpenConns(1)
	// Several processes may put a new file in WAL mode at once. SQLite refuses some of them whatever their timeout, so
	// they take turns.
	unlock, err := lockFile(file)
	if err == nil {
		err = w.Ping()
		unlock()
	}
	if err != nil {
		w.Close()
		r.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	db.file = file
	db.write, db.read = newBun(w, sqlitedialect.New()), newBun(r, sqlitedialect.New())
	db.executor = &sqliteExecutor{db: w}
	return nil
}

// sqliteName returns the name by which the driver opens a file.
func sqliteName(file string, pragmas ...string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(5000)"}, pragmas...)}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: q.Encode()}
	return u.String()
}

// Bulk prepares the database for a command that writes very much and is its only writer. PostgreSQL needs nothing;
// SQLite gets 256 MiB for pages, and a checkpoint each time its log reaches that size.
func (db *DB) Bulk(ctx context.Context) error {
	if db.Postgres() {
		return nil
	}
	for _, pragma := range []string{"PRAGMA cache_size = -262144", "PRAGMA wal_autocheckpoint = 65536"} {
		if _, err := db.write.ExecContext(ctx, pragma); err != nil {
			return Translate(err)
		}
	}
	return nil
}

// sqliteConnector creates the writing connection. It waits for another writing process as long as a statement may take
// at that time.
type sqliteConnector struct {
	db     *DB
	driver driver.Driver
	name   string
}

func (c *sqliteConnector) Driver() driver.Driver { return c.driver }

func (c *sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, busyTimeout(c.db.limit()), nil); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// lockFile waits for the lock beside a database file, and takes it.
func lockFile(file string) (unlock func() error, err error) {
	f, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock database: %w", err)
	}
	return f.Close, nil // closing releases it
}
