package record

import (
	"context"

	"castellan/domain/kit/page"
	"castellan/persistence/engine"
)

// Backlog counts the rows of a queue for which all filters hold, up to most, and finds the creation of the oldest of
// them. since is the expression of the creation, in milliseconds. It is one statement, which reads at most most+1 rows
// in the order of the index, oldest first.
func (t Table[R, T]) Backlog(ctx context.Context, db *engine.DB, most int, since string,
	fs ...Filter) (out page.Backlog, err error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	t.Order.Descending = false
	inner := t.Selected(db.Conn(ctx).NewSelect().Model((*R)(nil)).ColumnExpr(since+" AS since"),
		Part{Where: fs, Limit: most + 1})
	var found struct {
		Count int
		Since *int64
	}
	err = db.Conn(ctx).NewSelect().TableExpr("(?) AS waiting", inner).ColumnExpr("COUNT(*) AS count").
		ColumnExpr("MIN(since) AS since").Scan(ctx, &found)
	if err != nil {
		return out, engine.Translate(err)
	}
	if found.Since != nil {
		out.Oldest = engine.Time(*found.Since)
	}
	out.Count, out.More = min(found.Count, most), found.Count > most
	return out, nil
}
