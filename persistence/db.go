// Package persistence implements every store of the domain, on PostgreSQL and on
// SQLite. Its areas are the packages kit, delivery, guard, factor, account, proof,
// session, permit, gate, money, office and people; each slice is one file of its
// area: its rows, its kinds of writes and its queries.
//
// The one idea: a slice declares, package engine runs. Rows are private structs,
// instants are BIGINT milliseconds, JSON that only the service reads is TEXT.
//
// Start reading at kinds.go, the order in which writes run in a transaction, then
// at a plain slice such as session/allowedip.go. How units of work become durable is in
// package engine.
package persistence

import (
	"context"
	"embed"
	"fmt"
	"time"

	"castellan/persistence/engine"
	"castellan/persistence/kit"
)

// Options tune an open database. The zero value is ready for use.
type Options = engine.Options

// Committed is a transaction of gathered units that was committed.
type Committed = engine.Committed

// DB is an open database. It is safe for concurrent use.
type DB = engine.DB

// CauseOf names in a word why the database takes no writes; "" for an error of another origin. See engine.CauseOf.
func CauseOf(err error) string { return string(engine.CauseOf(err)) }

//go:embed migrations
var migrations embed.FS

// Open connects to a database: "sqlite:PATH" or "postgres://…". It neither
// creates tables nor starts the writer; call Migrate, then Start. UNAVAILABLE
// means that the server does not answer, or not yet.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	return engine.Open(ctx, dsn, kinds(o.Now), o)
}

// Migrate brings the schema to this program's version; see engine.DB.Migrate.
func Migrate(ctx context.Context, db *DB) (applied []string, err error) {
	return db.Migrate(ctx, migrations)
}

// BuildIndexes builds the indexes that Migrate has deferred; see engine.DB.BuildIndexes.
func BuildIndexes(ctx context.Context, db *DB) (built []string, err error) {
	return db.BuildIndexes(ctx, migrations)
}

// Pending names the migrations that the database lacks; see engine.DB.Pending.
func Pending(ctx context.Context, db *DB) ([]string, error) { return db.Pending(ctx, migrations) }

// Start begins to commit units. The audit key chains the audit rows; start
// names this process in them.
func Start(db *DB, auditKey []byte, start string) {
	db.Start(func(slot int) engine.State { return kit.NewChain(fmt.Sprintf("%s-%d", start, slot), auditKey) })
}
