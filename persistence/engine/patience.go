package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Patience is how long a statement of a start, a command or a migration may take.
const Patience = 30 * time.Second

// Bound limits one operation on PostgreSQL, so that a hanging server costs an error and not a caller. SQLite is in this
// process and needs no limit; its writer waits no longer for another process (sqliteConnector).
func (db *DB) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if db.patient.Load() {
		return db.boundPatiently(ctx)
	}
	if !db.Postgres() {
		return ctx, func() {}
	}
	ctx, ended := db.breaker.until(ctx)
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	return ctx, func() {
		if ctx.Err() == nil {
			db.breaker.answers.Add(1)
		}
		cancel()
		ended()
	}
}

// Read runs a read, such as the Count of a query, with the limit of Bound, and translates its error.
func Read[T any](ctx context.Context, db *DB, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	value, err := read(ctx)
	return value, Translate(err)
}

// Scan is Read for the rows of a query.
func (db *DB) Scan(ctx context.Context, query interface {
	Scan(ctx context.Context, to ...any) error
}, to ...any) error {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	return Translate(query.Scan(ctx, to...))
}

// boundPatiently limits an operation to Patience, and logs a wait once.
func (db *DB) boundPatiently(ctx context.Context) (context.Context, context.CancelFunc) {
	slow := db.logSlowWait()
	cancel := context.CancelFunc(func() {})
	if db.Postgres() {
		ctx, cancel = context.WithTimeout(ctx, Patience)
	}
	return ctx, func() { slow.Stop(); cancel() }
}

// logSlowWait logs a wait for the database once, unless it is stopped within the time that a request would wait.
func (db *DB) logSlowWait() *time.Timer {
	return time.AfterFunc(db.timeout, func() {
		if db.waited.CompareAndSwap(false, true) {
			slog.Warn("the database is slow; waiting for it", "at most", Patience)
		}
	})
}

// EndPatience is called when the service begins to serve: from now on a statement has Options.Timeout.
func (db *DB) EndPatience() {
	db.patient.Store(false)
	if db.Postgres() {
		return
	}
	if _, err := db.write.Exec(busyTimeout(db.limit())); err != nil {
		slog.Error("the busy timeout of the SQLite writer could not be set", "err", err)
	}
}

// limit returns how long one statement may take now.
func (db *DB) limit() time.Duration {
	if db.patient.Load() {
		return Patience
	}
	return db.timeout
}

func busyTimeout(d time.Duration) string {
	return fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds())
}
