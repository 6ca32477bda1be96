package persistence

import (
	"context"

	"castellan/domain/kit/page"
)

// listPage reads one page of a table whose order is descending. values are those
// of the order's columns for a mark.
func listPage[R, T, M any](ctx context.Context, db *DB, t table[R, T], q page.Query[M], values func(M) []any,
	fs []filter) (out page.Of[T], err error) {
	if out.Records, err = t.list(ctx, db, partOf(q, values, fs)); err != nil {
		return out, err
	}
	if out.More = q.Limit > 0 && len(out.Records) > q.Limit; out.More {
		out.Records = out.Records[:q.Limit]
	}
	if q.Count {
		out.Total, err = t.count(ctx, db, fs...)
	}
	return out, err
}

// partOf is a page and one record more, which tells that the list goes on.
func partOf[M any](q page.Query[M], values func(M) []any, fs []filter) part {
	p := part{where: fs}
	if q.After != nil {
		p.after = values(*q.After)
	}
	if q.Limit > 0 {
		p.limit = q.Limit + 1
	}
	return p
}
