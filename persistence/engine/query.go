package engine

import (
	"context"
	"database/sql"
	"reflect"
	"sync"
)

// Query is a SELECT of the common path: the columns of a row struct, a condition over $1 …, an order. Its text never
// changes, so every connection keeps it prepared. All other reads are built where they are needed.
type Query struct {
	Where, Order string
	// From, if set, replaces the row's table, and Columns its columns.
	From, Columns string
}

// preparedQuery is a Query for one type of rows.
type preparedQuery struct {
	text string
	row  reflect.Type

	once      sync.Once
	fields    [][]int // of row, for each column
	layoutErr error   // row has no field for a column
}

type queryKey struct {
	Query
	into reflect.Type
}

// Find reads the rows of a table for which a condition holds. into points to a row, which must exist (otherwise
// RECORD_NOT_FOUND), or to a slice of rows.
func (db *DB) Find(ctx context.Context, into any, where, order string, args ...any) error {
	return db.Ask(ctx, into, Query{Where: where, Order: order}, args...)
}

// Ask is Find for any query.
func (db *DB) Ask(ctx context.Context, into any, q Query, args ...any) error {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	p := db.prepare(into, q)
	if err := db.trace.prepared(ctx, p.text, args); err != nil {
		return Translate(err)
	}
	if s, ok := ctx.Value(txKey{}).(*slot); ok {
		return Translate(db.askInTx(ctx, s, into, p, args))
	}
	if isSlice(into) {
		return Translate(db.fetch(ctx, p, args, all(into)))
	}
	found := false
	if err := db.fetch(ctx, p, args, one(into, &found)); err != nil {
		return Translate(err)
	}
	if !found {
		return ErrNoRecord()
	}
	return nil
}

func isSlice(into any) bool { return reflect.TypeOf(into).Elem().Kind() == reflect.Slice }

func (db *DB) askInTx(ctx context.Context, s *slot, into any, p *preparedQuery, args []any) error {
	rows, err := s.tx.Tx.QueryContext(ctx, p.text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if isSlice(into) {
		return db.read.ScanRows(ctx, rows, into)
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return db.read.ScanRow(ctx, rows, into)
}

func (db *DB) prepare(into any, q Query) *preparedQuery {
	key := queryKey{q, reflect.TypeOf(into)}
	if p, ok := db.queries.Load(key); ok {
		return p.(*preparedQuery)
	}
	s := db.read.NewSelect().Model(into)
	if q.Where != "" {
		s = s.Where(q.Where)
	}
	if q.Order != "" {
		s = s.OrderExpr(q.Order)
	}
	if q.From != "" {
		s = s.ModelTableExpr(q.From)
	}
	if q.Columns != "" {
		s = s.ColumnExpr(q.Columns)
	}
	row := key.into.Elem()
	if isSlice(into) {
		row = row.Elem()
	}
	p, _ := db.queries.LoadOrStore(key, &preparedQuery{text: s.String(), row: row})
	return p.(*preparedQuery)
}
