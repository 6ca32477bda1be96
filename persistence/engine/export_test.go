package engine

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"castellan/domain/kit/commit"
)

// ExplainWrite returns PostgreSQL's plan for each text of a write, on the connection of the writer.
func (db *DB) ExplainWrite(ctx context.Context, w commit.Write) (plans []string, err error) {
	conn, err := db.executor.(*postgresExecutor).ready(ctx)
	if err != nil {
		return nil, err
	}
	steps, err := db.writer.batch.stepsOf([]*unit{{writes: []commit.Write{w}}})
	if err != nil {
		return nil, err
	}
	db.writer.batch.bind(steps)
	for _, s := range steps[0].statements {
		for _, text := range []string{s.postgres, s.failFast} {
			if text == "" {
				continue
			}
			rows, err := conn.Query(ctx, "EXPLAIN "+text, s.arrays()...)
			if err != nil {
				return nil, err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return nil, err
			}
			plans = append(plans, strings.Join(lines, "\n"))
		}
	}
	return plans, nil
}
