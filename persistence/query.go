package persistence

import (
	"context"
	"database/sql"
	"reflect"
)

// question is a SELECT of the common path: the columns of a row struct, a
// condition over $1 …, an order. Its text never changes, so it is kept
// prepared; everything else that is read is built where it is asked.
type question struct {
	row          reflect.Type
	where, order string
	// from stands in place of the row's table, also beside its columns.
	from, also string
}

type prepared struct {
	text string
	stmt *sql.Stmt
}

// find answers a question. into points to a row, and then there must be one
// (sql.ErrNoRows), or to a slice of rows.
func (db *DB) find(ctx context.Context, into any, where, order string, args ...any) error {
	return db.answer(ctx, into, question{row: reflect.TypeOf(into), where: where, order: order}, args...)
}

// answer is find for a question that was made beforehand.
func (db *DB) answer(ctx context.Context, into any, q question, args ...any) error {
	ctx, cancel := db.bound(ctx)
	defer cancel()
	p, err := db.question(ctx, into, q)
	if err != nil {
		return err
	}
	db.trace.prepared(ctx, p.text, args)
	var rows *sql.Rows
	if l, ok := ctx.Value(txKey{}).(*lane); ok {
		rows, err = l.tx.Tx.QueryContext(ctx, p.text, args...)
	} else {
		if !db.postgres() {
			// Watching a context costs more than the answer, which takes microseconds.
			ctx = context.WithoutCancel(ctx)
		}
		rows, err = p.stmt.QueryContext(ctx, args...)
	}
	if err != nil {
		return err
	}
	if reflect.TypeOf(into).Elem().Kind() == reflect.Slice {
		return db.read.ScanRows(ctx, rows, into)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return db.read.ScanRow(ctx, rows, into)
}

func (db *DB) question(ctx context.Context, into any, q question) (*prepared, error) {
	if p, ok := db.questions.Load(q); ok {
		return p.(*prepared), nil
	}
	s := db.read.NewSelect().Model(into)
	if q.where != "" {
		s = s.Where(q.where)
	}
	if q.order != "" {
		s = s.OrderExpr(q.order)
	}
	if q.from != "" {
		s = s.ModelTableExpr(q.from)
	}
	if q.also != "" {
		s = s.Column("u.*").ColumnExpr(q.also)
	}
	p := &prepared{text: s.String()}
	var err error
	if p.stmt, err = db.read.DB.PrepareContext(ctx, p.text); err != nil {
		return nil, err
	}
	if first, lost := db.questions.LoadOrStore(q, p); lost {
		p.stmt.Close()
		p = first.(*prepared)
	}
	return p, nil
}
