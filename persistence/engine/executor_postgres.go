package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgresExecutor runs the writer's transactions on a separate connection. The statements are sent in one pipeline:
// PostgreSQL executes the first while the last is on its way, and a batch costs one round trip for any number of
// tables. docs/decisions/0002-group-commit-and-its-executors.md explains why it does not use database/sql.
type postgresExecutor struct {
	cfg    *pgx.ConnConfig
	server *server
	conn   *pgx.Conn
	used   time.Time
	*presence

	prepared map[string]string // text of a statement → its name on conn
	pipeline pipeline
}

func newPostgresExecutor(cfg *pgx.ConnConfig, server *server, shows *presence) *postgresExecutor {
	cfg = cfg.Copy()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	// Nothing is done between the answers and COMMIT.
	more := []setting{{"idle_in_transaction_session_timeout", "'1s'", []string{"1s"}}}
	// Every statement finds its rows by key. Without these settings, the planner reads a whole table while its
	// statistics show a small table, and keeps that plan while the table grows.
	for _, method := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		more = append(more, setting{method, "'off'", []string{"off"}})
	}
	server.configure(cfg, more...)
	return &postgresExecutor{cfg: cfg, server: server, presence: shows}
}

// idle is how long the connection is assumed to be live without a check.
const idle = time.Second

// ready returns a live connection.
func (e *postgresExecutor) ready(ctx context.Context) (*pgx.Conn, error) {
	if e.conn != nil && !e.conn.IsClosed() && e.server.usable(e.conn) &&
		(time.Since(e.used) < idle || e.conn.Ping(ctx) == nil) {
		return e.conn, nil
	}
	e.close()
	cfg := e.cfg.Copy()
	e.server.aim(cfg)
	var err error
	e.conn, err = pgx.ConnectConfig(ctx, cfg)
	if err == nil {
		registerTypes(e.conn.TypeMap())
		err = e.show(ctx, e.conn)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	e.prepared, e.used = map[string]string{}, time.Now()
	return e.conn, nil
}

func (e *postgresExecutor) close() {
	if e.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		e.conn.Close(ctx)
		e.conn = nil
	}
}

// unflushed makes a transaction an asynchronous commit.
const unflushed = "SELECT set_config('synchronous_commit', 'off', true)"

// transact sends the steps together with their end, as one implicit transaction that fails if a row is refused, because
// most transactions have no refusals. Only after a failure does a second transaction find out which rows were refused.
func (e *postgresExecutor) transact(ctx context.Context, steps []step, flush bool) (failed map[int]bool, err error) {
	conn, err := e.ready(ctx)
	if err != nil {
		return nil, err
	}
	if err = e.failFast(ctx, conn, steps, flush); !errors.Is(err, errRefused) {
		return nil, err
	}
	failed, err = send(ctx, conn, steps, flush)
	if err != nil || len(failed) > 0 {
		if err != nil && conn.IsClosed() {
			err = lost(err)
		}
		if _, rerr := conn.Exec(ctx, "ROLLBACK"); rerr != nil {
			e.close() // ends the transaction, too
		}
		return failed, err
	}
	warned := e.server.warnings()
	if _, err = conn.Exec(ctx, "COMMIT"); err != nil {
		e.close()
		return nil, commitError{err}
	}
	e.used = time.Now()
	return nil, e.server.replicated(warned)
}

// lost returns an error for a connection that broke before anything was committed.
func lost(err error) error { return fmt.Errorf("%w: %w", driver.ErrBadConn, err) }

// prepare returns the name of a statement, which the connection keeps from then on. The library's own cache would
// forget all statements of a refused transaction.
func (e *postgresExecutor) prepare(ctx context.Context, conn *pgx.Conn, text string) (name string, err error) {
	if name, ok := e.prepared[text]; ok {
		return name, nil
	}
	made, err := conn.Prepare(ctx, text, text)
	if err != nil {
		if conn.IsClosed() {
			err = lost(err)
		}
		return "", err
	}
	e.prepared[text] = made.Name
	return made.Name, nil
}

// errRefused means that the transaction was rolled back because rows were refused.
var errRefused = errors.New("persistence: rows were refused")

// failFast executes steps and commits them, or returns errRefused. An error of a statement has rolled them back. After
// any other error it is unknown whether they were committed, unless not everything was sent.
func (e *postgresExecutor) failFast(ctx context.Context, conn *pgx.Conn, steps []step, flush bool) error {
	e.pipeline.reset()
	for _, s := range steps {
		for i := range s.statements {
			b := &s.statements[i]
			text := b.postgres
			if b.keys != nil {
				text = b.failFast
			}
			name, err := e.prepare(ctx, conn, text)
			if err != nil {
				return err
			}
			e.pipeline.execute(name, b)
		}
	}
	if !flush {
		name, err := e.prepare(ctx, conn, unflushed)
		if err != nil {
			return err
		}
		e.pipeline.execute(name, nil)
	}
	e.pipeline.sync()
	pg, warned := conn.PgConn(), e.server.warnings()
	if err := e.pipeline.send(ctx, pg.Conn()); err != nil {
		e.close()
		return lost(err)
	}
	for _, s := range steps {
		for i := range s.statements {
			if err := answered(ctx, pg); err != nil {
				return e.failed(ctx, conn, s, s.statements[i].keys != nil, err)
			}
		}
	}
	if err := ended(ctx, pg); err != nil {
		e.close()
		return commitError{err}
	}
	e.used = time.Now()
	return e.server.replicated(warned)
}

// failed interprets the error of a statement of failFast. The connection is ready again or closed when it returns.
func (e *postgresExecutor) failed(ctx context.Context, conn *pgx.Conn, s step, refusable bool, err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || uncertain(answer) {
		e.close()
		return commitError{err}
	}
	if ended(ctx, conn.PgConn()) != nil {
		e.close()
	}
	if answer.Code == refusedCode && refusable {
		return errRefused
	}
	return fmt.Errorf("%s: %w", s.writes[0].Table(), err)
}

// send begins a transaction and executes steps in it.
func send(ctx context.Context, conn *pgx.Conn, steps []step, flush bool) (failed map[int]bool, err error) {
	begin := []string{"BEGIN"}
	if !flush {
		begin = append(begin, unflushed)
	}
	var b pgx.Batch
	for _, text := range begin {
		b.Queue(text)
	}
	for _, s := range steps {
		for i := range s.statements {
			b.Queue(s.statements[i].postgres, s.statements[i].arrays()...)
		}
	}
	answers := conn.SendBatch(ctx, &b)
	defer answers.Close() // the error of an unread answer has no new information
	for range begin {
		if _, err := answers.Exec(); err != nil {
			return nil, err
		}
	}
	return runSteps(steps, nil, func(b *boundStatement) ([]int, error) { return b.answered(answers) })
}

func (b *boundStatement) answered(from pgx.BatchResults) (missing []int, err error) {
	if b.keys == nil {
		_, err := from.Exec()
		return nil, err
	}
	rows, err := from.Query()
	if err != nil {
		return nil, err
	}
	back, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return b.missing(back), err
}
