package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"castellan/domain/kit/fault"
)

// Cause names in a word of this program why the database takes no writes: for logs and metrics.
type Cause string

// The causes.
const (
	CauseReadOnly    Cause = "read_only"   // the server or the file is read-only
	CauseOutdated    Cause = "old_primary" // the server has an older timeline than one that was used before
	CauseRefused     Cause = "refused"     // the server refuses the connection: role, password, limit, encoding, pooler
	CauseDisk        Cause = "disk"        // the disk is full, or cannot be written
	CauseLocked      Cause = "locked"      // another process holds the SQLite file
	CauseSilent      Cause = "no_answer"   // no answer in time, such as of a missing synchronous standby
	CauseUnreachable Cause = "unreachable" // there is no connection
)

// CauseOf returns the cause of an UNAVAILABLE error of the database; "" for any other error.
func CauseOf(err error) Cause {
	if err == nil {
		return "" // without an allocation
	}
	var own databaseError
	if !errors.As(err, &own) {
		return ""
	}
	return causeOf(own)
}

func causeOf(err error) Cause {
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case errors.Is(err, errReadOnly):
		return CauseReadOnly
	case errors.Is(err, errOutdated):
		return CauseOutdated
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
			return CauseDisk
		case sqlite3.SQLITE_READONLY:
			return CauseReadOnly
		case sqlite3.SQLITE_BUSY:
			return CauseLocked
		}
	case errors.As(err, &pg):
		switch {
		case pg.Code == readOnlyTransaction:
			return CauseReadOnly
		case pg.Code == "53100":
			return CauseDisk
		case errors.As(err, &connect) && !dead(pg):
			return CauseRefused
		}
	case Unsuitable(err) != nil:
		return CauseRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, errUnreplicated),
		errors.Is(err, errSilent):
		return CauseSilent
	}
	return CauseUnreachable
}

// Writable returns nil if a unit of work could be made durable now. It commits a message without content on the
// writer's own connection, in turn with the units, and waits as long as they do.
func (db *DB) Writable(ctx context.Context) error {
	if err := db.admitted(ctx); err != nil {
		return err
	}
	if len(db.writer.queue) == cap(db.writer.queue) {
		return fault.New(fault.Overloaded, "too many writes are waiting").After(time.Second)
	}
	done := make(chan error, 1)
	select {
	case db.writer.probes <- done:
	case <-ctx.Done():
		return Translate(ctx.Err())
	case <-db.writer.stop:
		return fault.New(fault.Draining, "the service is stopping").After(time.Second)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return Translate(ctx.Err())
	}
}

// probe answers the callers of Writable that wait now.
func (w *writer) probe(first chan error) {
	all := []chan error{first}
	for more := true; more; {
		select {
		case next := <-w.probes:
			all = append(all, next)
		default:
			more = false
		}
	}
	err := w.probeOnce()
	for _, done := range all {
		done <- err
	}
}

func (w *writer) probeOnce() (err error) {
	ctx, cancel := w.db.Bound(context.Background())
	defer cancel()
	w.batch.mu.Lock()
	defer w.batch.mu.Unlock()
	began := time.Now()
	defer func() { w.outage.note(began, err, true) }()
	return Translate(w.db.executor.probe(ctx))
}

func (e *sqliteExecutor) probe(ctx context.Context) error {
	c, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(conn any) error {
		e.use(conn.(driver.Conn))
		return e.set("PRAGMA user_version = 0") // it writes the first page, also if nothing changes
	})
}

// withoutMessages are errors of a server on which pg_logical_emit_message is missing or forbidden.
var withoutMessages = []string{"42501", "42883", "0A000", "55000"}

func (e *postgresExecutor) probe(ctx context.Context) error {
	const mode = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
	for attempt := 0; ; attempt++ {
		conn, err := e.ready(ctx)
		if err != nil {
			return err
		}
		warned := e.server.warnings()
		state, err := row(ctx, conn.PgConn(), mode)
		if err == nil && state[0] == "f" {
			// A commit that flushes, and that waits for a synchronous standby.
			_, err = row(ctx, conn.PgConn(), "SELECT pg_logical_emit_message(true, 'castellan', '')")
			var refused *pgconn.PgError
			if errors.As(err, &refused) && slices.Contains(withoutMessages, refused.Code) {
				return nil
			}
			if err == nil {
				e.used = time.Now()
				return e.server.replicated(warned)
			}
		} else if err == nil {
			err = errReadOnly
			e.server.loseTo(conn.PgConn(), err)
		}
		e.close()
		if attempt > 0 || ctx.Err() != nil {
			return err
		}
	}
}

// failures logs the failures of transactions: the first of each cause, and its end.
type failures struct {
	mu    sync.Mutex
	cause Cause
	since time.Time
}

// note records how a transaction ended. A transaction that may have written nothing is no evidence that the database
// takes writes.
func (f *failures) note(err error, wrote bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch now := CauseOf(err); {
	case now == f.cause:
	case now != "":
		if f.cause == "" {
			f.since = time.Now()
		}
		f.cause = now
		slog.Warn("the database takes no writes", "cause", string(now), "err", err)
	case err == nil && wrote:
		slog.Info("the database takes writes again", "after", time.Since(f.since).Round(time.Millisecond))
		f.cause = ""
	}
}
