package engine

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

func (db *DB) openPostgres(ctx context.Context, dsn string, o Options) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errors.New("the url of PostgreSQL cannot be parsed") // the library's text may show the password
	}
	// bun writes arguments into the statement, so a cache of prepared statements keyed by text would only miss.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "castellan"
	}
	s := &server{limit: db.limit, readOnly: o.ReadOnly}
	db.server = s
	db.executor = newPostgresExecutor(cfg, s, newPresence(o))
	// A process that is stopped within a transaction must not lock its rows, and must not commit long after the instant
	// in its rows.
	s.configure(cfg, setting{"idle_in_transaction_session_timeout", "'5s'", []string{"5s"}})
	pool := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		s.aim(c)
		return nil
	}), stdlib.OptionAfterConnect(db.afterConnect), stdlib.OptionResetSession(s.reset))
	pool.SetMaxOpenConns(max(1, o.MaxConns-1)) // one is the writer's
	pool.SetMaxIdleConns(o.MaxConns)
	pool.SetConnMaxLifetime(maxAge) // of one that is idle until then
	s.empty = func() {
		pool.SetMaxIdleConns(-1)
		pool.SetMaxIdleConns(o.MaxConns)
	}
	db.read = newBun(pool, pgdialect.New())
	db.write = db.read
	bounded, cancel := db.Bound(ctx)
	defer cancel()
	s.survey(bounded, cfg)
	return nil
}

// examine refuses a pooler that gives one connection of the server to several sessions, and logs the settings of the
// role that are overridden.
func (db *DB) examine(ctx context.Context) error {
	bounded, cancel := db.Bound(ctx)
	defer cancel()
	e := db.executor.(*postgresExecutor)
	own, err := e.ready(bounded)
	if err != nil {
		return err
	}
	if db.readOnly {
		defer e.close()
	}
	if err := db.refusePooledSessions(bounded, own); err != nil {
		return err
	}
	var output string
	err = own.QueryRow(bounded, "SELECT reset_val FROM pg_settings WHERE name = 'bytea_output'").Scan(&output)
	if err == nil && output != "hex" {
		slog.Warn("a setting of the database or the role is overridden in the sessions of the service",
			"setting", "bytea_output", "value", output, "used", "hex")
	}
	return err
}

// afterConnect registers the types of arguments. It makes a session read-only if Options.ReadOnly is set, and remembers
// whether it already was.
func (db *DB) afterConnect(ctx context.Context, c *pgx.Conn) error {
	registerTypes(c.TypeMap())
	if !db.readOnly {
		return nil
	}
	var before string
	if err := c.QueryRow(ctx, "SHOW default_transaction_read_only").Scan(&before); err != nil {
		return err
	}
	db.serverReadOnly.Store(before == "on")
	_, err := c.Exec(ctx, "SET default_transaction_read_only = on")
	return err
}

// registerTypes names the types of arguments that are written into the text of a statement. The program is built
// without pgx's own list (nopgxregisterdefaulttypes): its variants of each type are 1.4 MB of code.
func registerTypes(types *pgtype.Map) {
	for name, values := range map[string][]any{
		"bool": {false}, "int2": {int16(0)}, "int4": {int32(0)}, "int8": {int64(0), 0}, "float8": {0.0}, "text": {""},
		"bytea": {[]byte(nil)}, "timestamptz": {time.Time{}}, "_bool": {[]bool(nil)}, "_int2": {[]int16(nil)},
		"_int8": {[]int64(nil)}, "_text": {[]string(nil)}, "_bytea": {[][]byte(nil)},
	} {
		for _, value := range values {
			types.RegisterDefaultPgType(value, name)
		}
	}
}

// newBun ignores columns that this version does not know: the next one may add them while both run.
func newBun(pool *sql.DB, d schema.Dialect) *bun.DB {
	return bun.NewDB(pool, d, bun.WithDiscardUnknownColumns())
}
