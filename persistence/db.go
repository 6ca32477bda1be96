// Package persistence implements every domain store over bun, on PostgreSQL
// and on SQLite, and the one writer that makes units of work durable.
//
// What differs between the two databases lives in this file and in
// migrations/<dialect>; every other file is dialect-free. Rows are private
// structs, instants are BIGINT milliseconds, JSON that only we read is TEXT.
// Start reading at DB, then writer.go for how a commit.Write becomes rows,
// statement.go for the statements of the common path that both databases keep
// prepared, and query.go for what is asked on it.
package persistence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"castellan/domain/fault"
)

// Options tune an open database. The zero value is ready for use.
type Options struct {
	// MaxConns bounds the connections of PostgreSQL and the readers of SQLite;
	// 0 means 8.
	MaxConns int
	// Timeout bounds one statement or commit against PostgreSQL; 0 means 1.5 s.
	Timeout time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Trace, where set, is told of every statement with its values in place. It
	// is for tests that compare what two paths cost: the text holds secrets.
	Trace func(ctx context.Context, statement string)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	read    *bun.DB // SQLite: read-only connections; PostgreSQL: the pool
	write   *bun.DB // SQLite: the one writing connection; PostgreSQL: the pool
	file    string  // of SQLite; "" for PostgreSQL
	common  transactor
	timeout time.Duration
	now     func() time.Time
	trace   tracer
	pulse   *pulse
	admit   func(ctx context.Context) error
	*writer

	questions sync.Map // question → *prepared
	purged    sync.Map // table → the id up to which it was looked through
	readers   readers  // of SQLite
}

// transactor makes the transactions of the common path, whose steps are all
// made of statements; see writer.once for the answer.
type transactor interface {
	// transact need not wait for the disk unless flush is true.
	transact(ctx context.Context, steps []step, flush bool) (failed map[int]bool, err error)
	close()
}

// Open connects to a database: "sqlite:PATH" or "postgres://…". It neither
// creates tables nor starts the writer; call Migrate, then Start. UNAVAILABLE is
// that of a server that does not answer, or not yet.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if o.MaxConns == 0 {
		o.MaxConns = 8
	}
	if o.Timeout == 0 {
		o.Timeout = 1500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	db := &DB{timeout: o.Timeout, now: o.Now, trace: o.Trace, pulse: newPulse()}
	var err error
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		err = db.openSQLite(path, o)
	} else if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		err = db.openPostgres(dsn, o)
	} else {
		err = errors.New("the url must begin with sqlite: or postgres://")
	}
	if err == nil {
		err = translate(db.read.PingContext(ctx))
	}
	if err != nil {
		if db.read != nil {
			db.read.Close()
		}
		return nil, fmt.Errorf("open database: %w", err)
	}
	if o.Trace != nil {
		read := db.read
		db.read = read.WithQueryHook(tracer(o.Trace))
		if db.write == read {
			db.write = db.read
		} else {
			db.write = db.write.WithQueryHook(tracer(o.Trace))
		}
	}
	db.writer = newWriter(db)
	return db, nil
}

func (db *DB) openSQLite(path string, o Options) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	open := func(pragmas ...string) (*sql.DB, error) {
		q := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(5000)"}, pragmas...)}
		return sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: q.Encode()}).String())
	}
	// The writer comes first: it creates the file and puts it in WAL mode. A
	// page that many commits write is copied into the file once per checkpoint,
	// so these are rarer than by default, at 16 MiB of log.
	w, err := open("journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(4000)", "foreign_keys(1)", "temp_store(MEMORY)")
	if err != nil {
		return err
	}
	w.SetMaxOpenConns(1)
	// Of several processes that put a new file in WAL mode at once SQLite refuses
	// some, however long they would wait.
	unlock, err := lock(file)
	if err == nil {
		err = w.Ping()
		unlock()
	}
	if err != nil {
		w.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	r, err := open("query_only(1)")
	if err != nil {
		w.Close()
		return err
	}
	r.SetMaxOpenConns(o.MaxConns)
	r.SetMaxIdleConns(o.MaxConns)
	db.file = file
	db.write, db.read = bun.NewDB(w, sqlitedialect.New()), bun.NewDB(r, sqlitedialect.New())
	db.common = &direct{db: w}
	return nil
}

func (db *DB) openPostgres(dsn string, o Options) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errors.New("the url of PostgreSQL cannot be parsed") // the library's text may show the password
	}
	// bun writes arguments into the statement, so a cache of prepared
	// statements keyed by text would only miss.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "castellan"
	}
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	cfg.RuntimeParams["synchronous_commit"] = "on"
	// A process that is stopped within a transaction must not hold its rows, and
	// must not commit long after the instant that its rows name.
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = "5000"
	cfg.ConnectTimeout = o.Timeout
	db.common = newPipeline(cfg)
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(max(1, o.MaxConns-1)) // one is the writer's
	pool.SetMaxIdleConns(o.MaxConns)
	db.read = bun.NewDB(pool, pgdialect.New())
	db.write = db.read
	return nil
}

func (db *DB) postgres() bool { return db.file == "" }

// Close stops the writer after what is queued and closes the database.
func (db *DB) Close() error {
	db.writer.close()
	db.common.close()
	db.readers.close()
	err := db.read.Close()
	if db.write != db.read {
		err = errors.Join(err, db.write.Close())
	}
	return err
}

// Pools are the connection pools, by what they are for. The connection on which
// PostgreSQL's writer commits is in none.
func (db *DB) Pools() map[string]*sql.DB {
	if db.postgres() {
		return map[string]*sql.DB{"pool": db.read.DB}
	}
	return map[string]*sql.DB{"readers": db.read.DB, "writer": db.write.DB}
}

// Ping makes a round trip to the database.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := db.bound(ctx)
	defer cancel()
	var one int
	err := db.read.NewSelect().ColumnExpr("1").Scan(ctx, &one)
	return translate(err)
}

// Exclusive runs fn while no other process of this database runs one: the
// lock under which migrations, keys and seeds are made.
func (db *DB) Exclusive(ctx context.Context, fn func(context.Context) error) error {
	if !db.postgres() {
		unlock, err := lock(db.file)
		if err != nil {
			return err
		}
		defer unlock()
		return fn(ctx)
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return translate(err)
	}
	defer conn.Close()
	const key = 0x63617374656c6c61 // "castella"
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(?)", key); err != nil {
		return translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(?)", key)
	return fn(ctx)
}

// lock waits for the lock that stands beside a database file, and takes it.
func lock(file string) (unlock func() error, err error) {
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

// alone makes the transaction that ctx carries wait until no other one that
// called it with this key is under way. SQLite has one writer, on which every
// such transaction begins as one; PostgreSQL takes an advisory lock.
func (db *DB) alone(ctx context.Context, key int64) error {
	l, ok := ctx.Value(txKey{}).(*lane)
	if !ok {
		return errors.New("persistence: a lock outside of a transaction")
	}
	if !db.postgres() {
		return nil
	}
	ctx, cancel := db.bound(ctx)
	defer cancel()
	_, err := l.tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", key)
	return translate(err)
}

type txKey struct{}

// conn is where a store reads: the transaction that ctx carries, else the
// readers.
func (db *DB) conn(ctx context.Context) bun.IDB {
	if l, ok := ctx.Value(txKey{}).(*lane); ok {
		return l.tx
	}
	return db.read
}

// bound limits one conversation with PostgreSQL, so that a server that hangs
// costs an error and not a caller.
func (db *DB) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if !db.postgres() {
		return ctx, func() {}
	}
	ctx, ended := db.pulse.until(ctx)
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	return ctx, func() { cancel(); ended() }
}

// translate turns errors of both drivers into the domain's vocabulary.
func translate(err error) error {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return fault.New(fault.RecordNotFound, "no such record")
	case errors.As(err, &pg):
		switch {
		case pg.Code == "23505":
			return fault.New(fault.RecordAlreadyExist, "the record exists already")
		case strings.HasPrefix(pg.Code, "57P"), pg.Code == idleInTransaction, strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "08"):
			return unavailable(err) // shutdown, out of resources, connection
		}
		return err
	case errors.As(err, &lite):
		switch lite.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
			return fault.New(fault.RecordAlreadyExist, "the record exists already")
		}
		if c := lite.Code() & 0xff; c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_FULL || c == sqlite3.SQLITE_IOERR {
			return unavailable(err)
		}
		return err
	}
	var neterr net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &neterr) || errors.As(err, &connect) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) {
		return unavailable(err)
	}
	return err
}

// idleInTransaction is what a process learns that was stopped in a transaction.
const idleInTransaction = "25P03"

func unavailable(cause error) error {
	return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, "the database cannot be reached").After(time.Second), cause)
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
