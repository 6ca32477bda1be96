// Package persistence implements every store of the domain, on PostgreSQL and on
// SQLite. Each slice is one file: its rows, its kinds of writes and its queries.
//
// The one idea: a slice declares, package engine runs. Rows are private structs,
// instants are BIGINT milliseconds, JSON that only the service reads is TEXT.
//
// Start reading at kinds.go, the order in which writes run in a transaction, then
// at a plain slice such as allowedip.go. How units of work become durable is in
// package engine.
package persistence

import (
	"context"
	"embed"
	"fmt"
	"time"

	"castellan/persistence/engine"
)

// Options tune an open database. The zero value is ready for use.
type Options = engine.Options

// Committed is a transaction of gathered units that was committed.
type Committed = engine.Committed

// DB is an open database. It is safe for concurrent use.
type DB struct{ *engine.DB }

//go:embed migrations
var migrations embed.FS

// Open connects to a database: "sqlite:PATH" or "postgres://…". It neither
// creates tables nor starts the writer; call Migrate, then Start. UNAVAILABLE
// means that the server does not answer, or not yet.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	db, err := engine.Open(ctx, dsn, kinds(o.Now), o)
	if err != nil {
		return nil, err
	}
	return &DB{db}, nil
}

// Migrate brings the schema to this program's version; see engine.DB.Migrate.
func (db *DB) Migrate(ctx context.Context) (applied []string, err error) {
	return db.DB.Migrate(ctx, migrations)
}

// Pending names the migrations that the database lacks; see engine.DB.Pending.
func (db *DB) Pending(ctx context.Context) ([]string, error) { return db.DB.Pending(ctx, migrations) }

// Start begins to commit units. The audit key chains the audit rows; start
// names this process in them.
func (db *DB) Start(auditKey []byte, start string) {
	db.DB.Start(func(slot int) engine.State {
		return &chain{name: fmt.Sprintf("%s-%d", start, slot), mac: macOf(auditKey)}
	})
}

// Short names for what every slice uses.
var (
	ms        = engine.Millis
	at        = engine.Time
	body      = engine.WriteJSON
	translate = engine.Translate
)
