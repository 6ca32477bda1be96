package record

import (
	"context"

	"castellan/domain/kit/page"
	"castellan/persistence/engine"
)

// ListPage reads one page of a table whose order is descending; with Oldest it is ascending. values are those of the
// order's columns for a mark.
func ListPage[R, T, M any](ctx context.Context, db *engine.DB, t Table[R, T], q page.Query[M], values func(M) []any,
	fs []Filter) (out page.Of[T], err error) {
	t.Order.Descending = t.Order.Descending && !q.Oldest
	if out.Records, err = t.List(ctx, db, PartOf(q, values, fs)); err != nil {
		return out, err
	}
	if out.More = q.Limit > 0 && len(out.Records) > q.Limit; out.More {
		out.Records = out.Records[:q.Limit]
	}
	if q.Count {
		out.Total, err = t.Count(ctx, db, fs...)
	}
	return out, err
}

// ByID returns the values of a mark that is an id.
func ByID[M ~struct{ ID K }, K any](mark M) []any { return []any{struct{ ID K }(mark).ID} }

// PartOf is a page and one record more, which tells that the list goes on.
func PartOf[M any](q page.Query[M], values func(M) []any, fs []Filter) Part {
	p := Part{Where: fs}
	if q.After != nil {
		p.After = values(*q.After)
	}
	if q.Limit > 0 {
		p.Limit = q.Limit + 1
	}
	return p
}
