package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Exclusive runs fn while no other process of this database runs one: it is the lock for migrations, keys and seeds. It
// waits for the other process without a limit.
func (db *DB) Exclusive(ctx context.Context, fn func(context.Context) error) error {
	waits := time.AfterFunc(db.timeout, func() { slog.Warn("waiting for another process that prepares the database") })
	defer waits.Stop()
	if !db.Postgres() {
		unlock, err := lockFile(db.file)
		if err != nil {
			return err
		}
		defer unlock()
		waits.Stop()
		return fn(ctx)
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return Translate(err)
	}
	defer conn.Close()
	const key = 0x63617374656c6c61 // "castella"
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(?)", key); err != nil {
		return Translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(?)", key)
	waits.Stop()
	return fn(ctx)
}

// LockTx makes the transaction that ctx carries wait until no other transaction that called LockTx with this key is
// under way. SQLite has one writer, and every transaction begins as a writer; PostgreSQL takes an advisory lock.
func (db *DB) LockTx(ctx context.Context, key int64) error {
	s, ok := ctx.Value(txKey{}).(*slot)
	if !ok {
		return errors.New("persistence: a lock outside of a transaction")
	}
	if !db.Postgres() {
		return nil
	}
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	_, err := s.tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", key)
	return Translate(err)
}
