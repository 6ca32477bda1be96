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

// pipeline is the connection on which PostgreSQL gets a transaction's
// statements in one go: it works on the first while the last is on its way,
// and a batch costs one round trip however many tables it writes. It keeps
// the statements prepared, and is the writer's alone.
type postgresExecutor struct {
	cfg   *pgx.ConnConfig
	limit func() time.Duration // of a connection attempt
	conn  *pgx.Conn
	used  time.Time
	kept  map[string]bool // texts of the statements that conn has
}

func newPostgresExecutor(cfg *pgx.ConnConfig, limit func() time.Duration) *postgresExecutor {
	cfg = cfg.Copy()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	// Every statement finds its rows by key. Left alone, the planner joins by
	// reading the whole table while its statistics say that it is small, and
	// keeps that plan while the table grows.
	for _, method := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		cfg.RuntimeParams[method] = "off"
	}
	// Nothing is done between its answers and its COMMIT.
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = "1000"
	return &postgresExecutor{cfg: cfg, limit: limit}
}

// idle is how long the connection is taken to live without a look.
const idle = time.Second

// ready returns a live connection.
func (p *postgresExecutor) ready(ctx context.Context) (*pgx.Conn, error) {
	if p.conn != nil && !p.conn.IsClosed() && (time.Since(p.used) < idle || p.conn.Ping(ctx) == nil) {
		return p.conn, nil
	}
	p.close()
	p.cfg.ConnectTimeout = p.limit()
	var err error
	p.conn, err = pgx.ConnectConfig(ctx, p.cfg)
	p.kept = map[string]bool{}
	return p.conn, err
}

func (p *postgresExecutor) close() {
	if p.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		p.conn.Close(ctx)
		p.conn = nil
	}
}

// transact makes steps in one transaction; see writer.once. Most are refused
// nothing: they are sent with their end, as what PostgreSQL takes for one
// transaction by itself. When that was refused, a transaction in two parts
// finds out which rows were.
func (p *postgresExecutor) transact(ctx context.Context, steps []step, flush bool) (failed map[int]bool, err error) {
	conn, err := p.ready(ctx)
	if err != nil {
		return nil, err
	}
	if err = p.whole(ctx, conn, steps, flush); !errors.Is(err, errRefused) {
		return nil, err
	}
	failed, err = p.apply(ctx, conn, steps)
	if err != nil && conn.IsClosed() {
		err = lost(err)
	}
	if err != nil || len(failed) > 0 {
		if _, rerr := conn.Exec(ctx, "ROLLBACK"); rerr != nil {
			p.close() // ends the transaction, too
		}
		return failed, err
	}
	if _, err = conn.Exec(ctx, "COMMIT"); err != nil {
		p.close()
		return nil, commitError{err}
	}
	p.used = time.Now()
	return nil, nil
}

// lost is an error of a connection that broke before anything was committed.
func lost(err error) error { return fmt.Errorf("%w: %w", driver.ErrBadConn, err) }

// prepare makes sure of a statement. The library's own cache would forget all
// statements of a transaction that was refused.
func (p *postgresExecutor) prepare(ctx context.Context, conn *pgx.Conn, text string) error {
	if p.kept[text] {
		return nil
	}
	if _, err := conn.Prepare(ctx, text, text); err != nil {
		if conn.IsClosed() {
			err = lost(err)
		}
		return err
	}
	p.kept[text] = true
	return nil
}

// unflushed makes the transaction that it ends an asynchronous commit.
const unflushed = "SELECT set_config('synchronous_commit', 'off', true)"

// errRefused is that of a transaction of which rows were refused.
var errRefused = errors.New("persistence: rows were refused")

// whole makes steps and commits them. An error of a statement has rolled them
// back; after any other it is not known whether they were committed, unless
// nothing was sent.
func (p *postgresExecutor) whole(ctx context.Context, conn *pgx.Conn, steps []step, flush bool) error {
	var b pgx.Batch
	for _, s := range steps {
		for i := range s.statements {
			c := &s.statements[i]
			all, failFast, values := c.all, c.failFast, c.arrays
			if c.rows.Len() == 1 {
				all, failFast, values = c.sole, c.soleFailFast, func() []any { return c.values(0) }
			}
			if c.keys != nil {
				all = failFast
			}
			if err := p.prepare(ctx, conn, all); err != nil {
				return err
			}
			b.Queue(all, values()...)
		}
	}
	if !flush {
		if err := p.prepare(ctx, conn, unflushed); err != nil {
			return err
		}
		b.Queue(unflushed)
	}
	answers := conn.SendBatch(ctx, &b)
	for _, s := range steps {
		for i := range s.statements {
			_, err := answers.Exec()
			if err == nil {
				continue
			}
			answers.Close() // says the same
			var refused *pgconn.PgError
			switch {
			case !errors.As(err, &refused) && !pgconn.SafeToRetry(err):
				p.close()
				return commitError{err}
			case refused != nil && refused.Code == refusedCode && s.statements[i].keys != nil:
				return errRefused
			case refused == nil && conn.IsClosed():
				err = lost(err)
			}
			return fmt.Errorf("%s: %w", s.writes[0].Table(), err)
		}
	}
	if err := answers.Close(); err != nil {
		p.close()
		return commitError{err}
	}
	p.used = time.Now()
	return nil
}

func (p *postgresExecutor) apply(ctx context.Context, conn *pgx.Conn, steps []step) (failed map[int]bool, err error) {
	var b pgx.Batch
	b.Queue("BEGIN")
	for _, s := range steps {
		for i := range s.statements {
			b.Queue(s.statements[i].all, s.statements[i].arrays()...)
		}
	}
	answers := conn.SendBatch(ctx, &b)
	defer answers.Close() // an error of what nobody reads any more says nothing new
	if _, err := answers.Exec(); err != nil {
		return nil, err
	}
	for i := range steps {
		s := &steps[i]
		if len(failed) > 0 && !s.kind.refusable {
			return failed, nil // what the losers of a race inserted does not matter
		}
		for j := range s.statements {
			missing, err := s.statements[j].answered(answers)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.writes[0].Table(), err)
			}
			s.refuse(&failed, missing)
		}
	}
	return failed, nil
}

// answered reads what became of a call.
func (c *boundStatement) answered(from pgx.BatchResults) (missing []int, err error) {
	if c.keys == nil {
		_, err := from.Exec()
		return nil, err
	}
	rows, err := from.Query()
	if err != nil {
		return nil, err
	}
	back, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return c.missing(back), err
}
