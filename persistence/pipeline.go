package persistence

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// pipeline is the connection on which PostgreSQL gets a transaction's
// statements in one go: it works on the first while the last is on its way,
// and a batch costs two round trips however many tables it writes. It keeps
// the statements prepared, and is the writer's alone.
type pipeline struct {
	cfg  *pgx.ConnConfig
	conn *pgx.Conn
	used time.Time
}

func newPipeline(cfg *pgx.ConnConfig) *pipeline {
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
	return &pipeline{cfg: cfg}
}

// idle is how long the connection is taken to live without a look.
const idle = time.Second

// ready returns a live connection.
func (p *pipeline) ready(ctx context.Context) (*pgx.Conn, error) {
	if p.conn != nil && !p.conn.IsClosed() && (time.Since(p.used) < idle || p.conn.Ping(ctx) == nil) {
		return p.conn, nil
	}
	p.close()
	var err error
	p.conn, err = pgx.ConnectConfig(ctx, p.cfg)
	return p.conn, err
}

func (p *pipeline) close() {
	if p.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		p.conn.Close(ctx)
		p.conn = nil
	}
}

// transact makes steps in one transaction; see writer.once.
func (p *pipeline) transact(ctx context.Context, steps []step) (failed map[int]bool, err error) {
	conn, err := p.ready(ctx)
	if err != nil {
		return nil, err
	}
	failed, err = p.apply(ctx, conn, steps)
	if err != nil || len(failed) > 0 {
		if _, rerr := conn.Exec(ctx, "ROLLBACK"); rerr != nil {
			p.close() // ends the transaction, too
		}
		return failed, err
	}
	if _, err = conn.Exec(ctx, "COMMIT"); err != nil {
		p.close()
		return nil, undecided{err}
	}
	p.used = time.Now()
	return nil, nil
}

func (p *pipeline) apply(ctx context.Context, conn *pgx.Conn, steps []step) (failed map[int]bool, err error) {
	var b pgx.Batch
	b.Queue("BEGIN")
	for _, s := range steps {
		for i := range s.calls {
			b.Queue(s.calls[i].all, s.calls[i].arrays()...)
		}
	}
	answers := conn.SendBatch(ctx, &b)
	defer answers.Close() // an error of what nobody reads any more says nothing new
	if _, err := answers.Exec(); err != nil {
		return nil, err
	}
	for i := range steps {
		s := &steps[i]
		if len(failed) > 0 && s.plan.order >= firstWrite {
			return failed, nil // what the losers of a race inserted does not matter
		}
		for j := range s.calls {
			missing, err := s.calls[j].answered(answers)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.writes[0].Table(), err)
			}
			s.refuse(&failed, missing)
		}
	}
	return failed, nil
}

// answered reads what became of a call.
func (c *call) answered(from pgx.BatchResults) (missing []int, err error) {
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
