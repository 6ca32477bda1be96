package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

func (db *DB) openPostgres(dsn string, o Options) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errors.New("the url of PostgreSQL cannot be parsed") // the library's text may show the password
	}
	// bun writes arguments into the statement, so a cache of prepared statements keyed by text would only miss.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "castellan"
	}
	cfg.RuntimeParams["standard_conforming_strings"] = "on"
	cfg.RuntimeParams["synchronous_commit"] = "on"
	// A process that is stopped within a transaction must not lock its rows, and must not commit long after the instant
	// in its rows.
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = "5000"
	db.executor = newPostgresExecutor(cfg, db.limit)
	pool := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		c.ConnectTimeout = db.limit()
		return nil
	}), stdlib.OptionAfterConnect(db.afterConnect))
	pool.SetMaxOpenConns(max(1, o.MaxConns-1)) // one is the writer's
	pool.SetMaxIdleConns(o.MaxConns)
	db.read = bun.NewDB(pool, pgdialect.New())
	db.write = db.read
	return nil
}

// afterConnect makes a session read-only if Options.ReadOnly is set, and remembers whether it already was.
func (db *DB) afterConnect(ctx context.Context, c *pgx.Conn) error {
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
