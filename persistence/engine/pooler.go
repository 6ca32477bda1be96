package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errPooled is the refusal of transaction and statement pooling.
const errPooled unsuitable = "a pooler between the service and PostgreSQL shares one connection of the server among " +
	"several sessions (transaction or statement pooling). The service holds locks of sessions and prepared statements, " +
	"which belong to one connection: set pool_mode = session for this database, or connect without the pooler"

// refusePooledSessions returns errPooled if another session sees the mark of the writer's session, or the writer's
// session moves to another connection of the server.
func (db *DB) refusePooledSessions(ctx context.Context, own *pgx.Conn) error {
	mark := rand.Text()
	first, err := row(ctx, own.PgConn(), "SELECT set_config('castellan.session', "+quote(mark)+
		", false), pg_backend_pid()")
	if err != nil {
		return fmt.Errorf("mark the session: %w", err)
	}
	other, err := db.read.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	// A pooler gives the session a connection of the server until the end of the transaction. The writer is idle and
	// has returned the one with the mark, unless it has it for the whole session.
	const read = "SELECT COALESCE(current_setting('castellan.session', true), ''), pg_backend_pid()::text"
	var seen, pid string
	tx, err := other.BeginTx(ctx, nil)
	if err != nil {
		if strings.Contains(err.Error(), "statement pooling mode") {
			return errPooled
		}
		return err
	}
	err = tx.QueryRowContext(ctx, read).Scan(&seen, &pid)
	if rerr := tx.Rollback(); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	if seen == mark || pid == first[1] {
		return errPooled
	}
	for range 3 {
		again, err := row(ctx, own.PgConn(), read)
		if err != nil {
			return err
		}
		if !slices.Equal(again, first) {
			return errPooled
		}
	}
	return nil
}
