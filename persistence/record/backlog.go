package record

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/persistence/engine"
)

// Backlog is the query of the backlog of a queue: the rows for which all filters hold, up to most, and the creation of
// the oldest of them. since is the expression of the creation, in milliseconds. It reads at most most+1 rows in the
// order of the table's index, oldest first.
func (t Table[R, T]) Backlog(ctx context.Context, db *engine.DB, most int, since string,
	fs ...Filter) *bun.SelectQuery {
	t.Order.Descending = false
	rows := t.Selected(db.Conn(ctx).NewSelect().Model((*R)(nil)).ColumnExpr(since+" AS since"),
		Part{Where: fs, Limit: most + 1})
	return db.Conn(ctx).NewSelect().TableExpr("(?) AS waiting", rows).ColumnExpr("COUNT(*) AS found").
		ColumnExpr("MIN(since) AS since")
}

// ReadBacklog runs a query of Backlog with the same most.
func ReadBacklog(ctx context.Context, db *engine.DB, most int, query *bun.SelectQuery) (out page.Backlog, err error) {
	var row struct {
		Found int
		Since *int64
	}
	if err := db.Scan(ctx, query, &row); err != nil {
		return out, err
	}
	if row.Since != nil {
		out.Oldest = engine.Time(*row.Since)
	}
	out.Count, out.More = min(row.Found, most), row.Found > most
	return out, nil
}
