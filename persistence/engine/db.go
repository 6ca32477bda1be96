// Package engine runs units of work on PostgreSQL and on SQLite. It depends on no slice: package persistence passes it
// the kinds of writes and the migrations.
//
// The one idea: a unit of work is data (domain/kit/commit), so one writer combines the waiting units into one
// transaction of prepared statements.
//
// Start reading at DB. Then kind.go converts a type of write into statements, writer.go combines units into a
// transaction, and slot.go runs a caller's own transaction. executor_*.go runs the statements on each database, and
// query.go keeps the common reads prepared. The differences between the two databases are in postgres.go, sqlite.go,
// executor_*.go and fetch.go.
package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
)

// Options tune an open database. The zero value is ready for use.
type Options struct {
	// MaxConns bounds the connections of PostgreSQL and the readers of SQLite; 0 means 8.
	MaxConns int
	// Timeout bounds one statement or commit against PostgreSQL, and the wait for another process that writes to the
	// SQLite file; 0 means 1.5 s.
	Timeout time.Duration
	// Patient gives a statement Patience instead of Timeout, until EndPatience is called: a start and a command should
	// wait for a slow database instead of failing.
	Patient bool
	// ReadOnly opens an existing database and never writes to it: no file is created, and the sessions are read-only.
	// Migrate and Start must not be called. A missing file is fs.ErrNotExist.
	ReadOnly bool
	// Serves is set by a process that serves requests; Clustered, if it is a node of a cluster. Another serving process
	// is refused on an SQLite file, and is visible in Servers on PostgreSQL.
	Serves, Clustered bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Trace, if set, receives every statement with its values in place, before it runs, and says whether the statement
	// fails instead. It is for tests: the text contains secrets.
	Trace func(ctx context.Context, statement string) (fails bool)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	read     *bun.DB // SQLite: read-only connections; PostgreSQL: the pool
	write    *bun.DB // SQLite: the one writing connection; PostgreSQL: the pool
	file     string  // of SQLite; "" for PostgreSQL
	kinds    kindSet
	executor executor
	server   *server // of PostgreSQL
	timeout  time.Duration
	patient  atomic.Bool
	waited   atomic.Bool // a slow database was logged
	now      func() time.Time
	trace    tracer
	breaker  *circuitBreaker
	admit    func(ctx context.Context) error
	*writer

	readOnly       bool        // Options.ReadOnly
	serverReadOnly atomic.Bool // the server's sessions are read-only by default

	serving io.Closer // the lock of the process that serves an SQLite file
	queries sync.Map  // Query → *preparedQuery
	purged  sync.Map  // table → the last id that was checked
	readers readers   // of SQLite
}

// Open connects to a database: "sqlite:PATH" or "postgres://…". It neither creates tables nor starts the writer; call
// Migrate, then Start. UNAVAILABLE means that the server does not answer, or not yet.
func Open(ctx context.Context, dsn string, kinds Kinds, o Options) (*DB, error) {
	o.MaxConns, o.Timeout = cmp.Or(o.MaxConns, 8), cmp.Or(o.Timeout, 1500*time.Millisecond)
	if o.Now == nil {
		o.Now = time.Now
	}
	db := &DB{timeout: o.Timeout, now: o.Now, trace: o.Trace, breaker: newCircuitBreaker(),
		readOnly: o.ReadOnly}
	db.patient.Store(o.Patient)
	var err error
	if db.kinds, err = kinds.set(); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		err = db.openSQLite(path, o)
	} else if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		err = db.openPostgres(ctx, dsn, o)
	} else {
		err = errors.New("the url must begin with sqlite: or postgres://")
	}
	if err == nil {
		err = Translate(db.read.PingContext(ctx))
	}
	if err == nil && db.Postgres() {
		err = Translate(db.examine(ctx))
	}
	if err != nil {
		if db.serving != nil {
			db.serving.Close()
		}
		if db.read != nil {
			db.executor.close()
			db.read.Close()
		}
		if u := Unsuitable(err); u != nil {
			err = u
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

// Close stops the writer after the queued units and closes the database.
func (db *DB) Close() error {
	db.writer.close()
	db.executor.close()
	db.readers.close()
	err := db.read.Close()
	if db.write != db.read {
		err = errors.Join(err, db.write.Close())
	}
	if db.serving != nil {
		err = errors.Join(err, db.serving.Close())
	}
	return err
}

// Postgres reports whether the database is PostgreSQL; otherwise it is SQLite.
func (db *DB) Postgres() bool { return db.file == "" }

// Now returns the time of the database's clock, Options.Now.
func (db *DB) Now() time.Time { return db.now() }

// Pools returns the connection pools, by their use. The connection on which the writer of PostgreSQL commits is in
// none.
func (db *DB) Pools() map[string]*sql.DB {
	if db.Postgres() {
		return map[string]*sql.DB{"pool": db.read.DB}
	}
	return map[string]*sql.DB{"readers": db.read.DB, "writer": db.write.DB}
}

func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.Scan(ctx, db.read.NewSelect().ColumnExpr("1"), &one)
}

type txKey struct{}

// Conn returns the connection for a store's reads and writes: the transaction that ctx carries, otherwise the readers.
func (db *DB) Conn(ctx context.Context) bun.IDB {
	if s, ok := ctx.Value(txKey{}).(*slot); ok {
		return s.tx
	}
	return db.read
}
