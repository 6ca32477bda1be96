package persistence

import (
	"context"
	"reflect"
	"sync"
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
	row  reflect.Type

	once    sync.Once
	fields  [][]int // of row, for each column
	strange error   // a column is none of row's
}

// find answers a question. into points to a row, and then there must be one
// (sql.ErrNoRows), or to a slice of rows.
func (db *DB) find(ctx context.Context, into any, where, order string, args ...any) error {
	return db.answer(ctx, into, question{row: reflect.TypeOf(into), where: where, order: order}, args...)
}

func (db *DB) question(into any, q question) *prepared {
	if p, ok := db.questions.Load(q); ok {
		return p.(*prepared)
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
	row := reflect.TypeOf(into).Elem()
	if row.Kind() == reflect.Slice {
		row = row.Elem()
	}
	p, _ := db.questions.LoadOrStore(q, &prepared{text: s.String(), row: row})
	return p.(*prepared)
}
