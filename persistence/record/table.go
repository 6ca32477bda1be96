// Package record is the kit of ordinary records: lists by pages, filters, changes as one
// step and the columns of amounts and of JSON, on PostgreSQL and on SQLite.
//
// The one idea: a slice of records is a Table, a value that says how rows become records.
// Writes that many requests share are kinds of package engine instead.
//
// Start reading at Table.
package record

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/persistence/engine"
)

// Table keeps records T as rows R. A slice of ordinary records declares its row struct, the two conversions and its
// filters. The errors, the limits and the order of locks are the same for every table. RECORD_NOT_FOUND reports a
// missing row, RECORD_ALREADY_EXIST a unique key that is taken. Every
// method joins the transaction that ctx carries.
type Table[R, T any] struct {
	// Record reads a row; Row writes a record. A table that is only read by this
	// has no Row. Of derives both.
	Record func(R) (T, error)
	Row    func(T) R
	// Reads and Writes add to a derived record or row what Of cannot derive.
	Reads  func(R, *T) error
	Writes func(T, *R)
	// Order is that of List and Find; by id where it is not set.
	Order Keyset
	// Fixed are the columns that no change and no save sets, beside the key.
	Fixed []string
	// Absent is the text of RECORD_NOT_FOUND, where it is not "no such record".
	Absent string
	// Join, where set, adds columns of other tables to the rows of List, Count and Find.
	Join func(*bun.SelectQuery) *bun.SelectQuery
}

// Created is the instant of a row that the table sets.
type Created struct{ CreatedAt int64 }

// Stamps are the instants of a row that the table sets.
type Stamps struct {
	CreatedAt int64
	UpdatedAt int64
}

func (c *Created) Stamp(now int64) { c.CreatedAt = now }

func (s *Stamps) Stamp(now int64) { s.CreatedAt, s.UpdatedAt = now, now }

// Filter is a condition on columns of the table.
type Filter struct {
	text string
	args []any
}

func Where(text string, args ...any) Filter { return Filter{text, args} }

// Within puts the condition between two texts, such as those of a subquery.
func (f Filter) Within(before, after string) Filter { return Filter{before + f.text + after, f.args} }

// Is holds for rows that have a value in a column.
func Is(column string, value any) Filter { return Where("? = ?", bun.Ident(column), value) }

// Given is a filter by a value that a query names, and none by the zero value.
func Given[V comparable](column string, value V) Filter {
	if value == *new(V) {
		return Filter{}
	}
	return Is(column, value)
}

// Sent is a filter by a value that a query names, and none by nil.
func Sent[V any](column string, value *V) Filter {
	if value == nil {
		return Filter{}
	}
	return Is(column, *value)
}

// Among is a filter by any of some values, and none where there are none.
func Among[V any](column string, values []V) Filter {
	if len(values) == 0 {
		return Filter{}
	}
	return Where("? IN (?)", bun.Ident(column), bun.List(values))
}

// Between is a filter by a time from one instant to another, both included; a zero instant is no bound.
func Between(column string, from, to time.Time) Filter {
	f := Filter{}
	if !from.IsZero() {
		f = Where("? >= ?", bun.Ident(column), engine.Millis(from))
	}
	if !to.IsZero() {
		f = Where("? <= ?", bun.Ident(column), engine.Millis(to)).And(f)
	}
	return f
}

// And holds where both do; a filter by nothing adds nothing.
func (f Filter) And(g Filter) Filter {
	if g.text == "" {
		return f
	}
	return Where(f.text+" AND "+g.text, slices.Concat(f.args, g.args)...)
}

// Counted is the expression that counts the rows for which the filter holds, with its arguments.
func (f Filter) Counted() (text string, args []any) {
	return "COUNT(CASE WHEN " + f.text + " THEN 1 END)", f.args
}

// Filtered is a query for whose rows all filters hold.
func Filtered[Q interface{ Where(string, ...any) Q }](q Q, fs []Filter) Q {
	for _, f := range fs {
		if f.text != "" {
			q = q.Where(f.text, f.args...)
		}
	}
	return q
}

// Keyset is the order of a list: columns, separated by commas, that together are
// unique and that an index has in this order. A page begins after a row and not
// after a number of rows, so the last page costs what the first one does.
type Keyset struct {
	Columns    string
	Descending bool
}

// Part is the part of a list that is wanted; the zero value is all of it.
type Part struct {
	Where []Filter
	After []any // the values of the order's columns in the row before; nil: from the start
	Limit int   // 0: no limit
}

// Selected is the query of a part of the table.
func (t Table[R, T]) Selected(q *bun.SelectQuery, p Part) *bun.SelectQuery {
	return selected(q, t.Order, t.Join, p)
}

func selected(q *bun.SelectQuery, order Keyset, join func(*bun.SelectQuery) *bun.SelectQuery, p Part) *bun.SelectQuery {
	columns := cmp.Or(order.Columns, "id")
	compare, by := " > ", columns
	if order.Descending {
		compare, by = " < ", strings.ReplaceAll(columns, ",", " DESC,")+" DESC"
	}
	q = Filtered(q, p.Where).OrderExpr(by)
	if join != nil {
		q = join(q)
	}
	if p.After != nil {
		values := strings.Repeat(", ?", len(p.After)-1)
		q = q.Where("("+columns+")"+compare+"(?"+values+")", p.After...)
	}
	if p.Limit > 0 {
		q = q.Limit(int64(p.Limit))
	}
	return q
}

// List reads a part of the table in its order.
func (t Table[R, T]) List(ctx context.Context, db *engine.DB, p Part) ([]T, error) {
	var rows []R
	if err := read(ctx, db, &rows, t.Order, t.Join, p, nil); err != nil {
		return nil, err
	}
	return t.records(rows)
}

// read fills model, a pointer to a row or to a list of rows. It and its like have no types of rows, because the methods
// of a table are compiled for each.
func read(ctx context.Context, db *engine.DB, model any, order Keyset, join func(*bun.SelectQuery) *bun.SelectQuery,
	p Part, with func(*bun.SelectQuery) *bun.SelectQuery) error {
	q := selected(db.Conn(ctx).NewSelect().Model(model), order, join, p)
	if with != nil {
		q = with(q)
	}
	return db.Scan(ctx, q)
}

// Each converts rows by a function that has no error.
func Each[R, T any](rows []R, of func(R) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = of(r)
	}
	return out
}

func (t Table[R, T]) records(rows []R) ([]T, error) {
	out := make([]T, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = t.Record(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Count counts the rows for which all filters hold.
func (t Table[R, T]) Count(ctx context.Context, db *engine.DB, fs ...Filter) (int, error) {
	return count(ctx, db, (*R)(nil), t.Join, fs)
}

func count(ctx context.Context, db *engine.DB, model any, join func(*bun.SelectQuery) *bun.SelectQuery, fs []Filter,
) (int, error) {
	q := Filtered(db.Conn(ctx).NewSelect().Model(model), fs)
	if join != nil {
		q = join(q)
	}
	n, err := engine.Read(ctx, db, q.Count)
	return int(n), err
}

// Find reads the first row, in the order of the table, for which all filters hold; RECORD_NOT_FOUND.
func (t Table[R, T]) Find(ctx context.Context, db *engine.DB, fs ...Filter) (T, error) {
	return t.first(ctx, db, fs, nil)
}

// Lock is Find, and keeps the row from changes of others until the transaction of ctx ends.
func (t Table[R, T]) Lock(ctx context.Context, db *engine.DB, fs ...Filter) (T, error) {
	if !db.Postgres() { // SQLite has one writer, and every transaction begins as one
		return t.first(ctx, db, fs, nil)
	}
	return t.first(ctx, db, fs, locked)
}

func locked(q *bun.SelectQuery) *bun.SelectQuery { return q.For("UPDATE OF ?TableAlias") }

func (t Table[R, T]) first(ctx context.Context, db *engine.DB, fs []Filter,
	with func(*bun.SelectQuery) *bun.SelectQuery) (record T, err error) {
	var row R
	if err := read(ctx, db, &row, t.Order, t.Join, Part{Where: fs, Limit: 1}, with); err != nil {
		return record, translate(err, t.Absent)
	}
	return t.Record(row)
}

// Prepared reads the one row for which a condition over $1 … holds by a prepared query, without Join and Order. It is
// for reads of the common path; RECORD_NOT_FOUND.
func (t Table[R, T]) Prepared(ctx context.Context, db *engine.DB, where string, args ...any) (record T, err error) {
	var row R
	if err := db.Find(ctx, &row, where, "", args...); err != nil {
		return record, translate(err, t.Absent)
	}
	return t.Record(row)
}

// PreparedList is Prepared for all rows, in a fixed order.
func (t Table[R, T]) PreparedList(ctx context.Context, db *engine.DB, where, order string, args ...any) ([]T, error) {
	var rows []R
	if err := db.Find(ctx, &rows, where, order, args...); err != nil {
		return nil, err
	}
	return t.records(rows)
}

// Add inserts a record and returns the id that the database gives it;
// RECORD_ALREADY_EXIST.
func (t Table[R, T]) Add(ctx context.Context, db *engine.DB, record T) (id int64, err error) {
	row := t.Row(record)
	return add(ctx, db, &row)
}

func add(ctx context.Context, db *engine.DB, row any) (id int64, err error) {
	stamp(db, row)
	err = Write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		return tx.NewInsert().Model(row).ExcludeColumn("id").Returning("id").Scan(ctx, &id)
	})
	return id, err
}

func stamp(db *engine.DB, row any) {
	if s, ok := row.(interface{ Stamp(int64) }); ok {
		s.Stamp(engine.Millis(db.Now()))
	}
}

// Change reads the one row for which all filters hold, gives its record to f and
// saves the record that f returns, as one step. It stamps the row before it reads
// it, in one statement: a second change waits for this one. An error of f is
// returned and nothing is saved.
func (t Table[R, T]) Change(ctx context.Context, db *engine.DB, f func(T) (T, error), fs ...Filter) error {
	var row R
	return change(ctx, db, &row, t.Absent, fs, func(ctx context.Context) error {
		record, err := t.Record(row)
		if err != nil {
			return err
		}
		if record, err = f(record); err != nil {
			return err
		}
		return t.Save(ctx, db, record, fs...)
	})
}

func change(ctx context.Context, db *engine.DB, row any, absent string, fs []Filter,
	then func(context.Context) error) error {
	return Write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		stamp := tx.NewUpdate().Model(row).Set("updated_at = ?", engine.Millis(db.Now()))
		if err := Filtered(stamp, fs).Returning("*").Scan(ctx); err != nil {
			return translate(err, absent)
		}
		return then(ctx)
	})
}

// Save replaces the columns that are not fixed; RECORD_NOT_FOUND,
// RECORD_ALREADY_EXIST.
func (t Table[R, T]) Save(ctx context.Context, db *engine.DB, record T, fs ...Filter) error {
	row := t.Row(record)
	return save(ctx, db, &row, t.Fixed, t.Absent, fs)
}

func save(ctx context.Context, db *engine.DB, row any, fixed []string, absent string, fs []Filter) error {
	stamp(db, row)
	return Write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		return translate(OneRow(Filtered(tx.NewUpdate().Model(row).ExcludeColumn(fixed...), fs).Exec(ctx)), absent)
	})
}

// Remove deletes the rows for which all filters hold; RECORD_NOT_FOUND when there
// is none.
func (t Table[R, T]) Remove(ctx context.Context, db *engine.DB, fs ...Filter) error {
	return remove(ctx, db, (*R)(nil), t.Absent, fs)
}

func remove(ctx context.Context, db *engine.DB, model any, absent string, fs []Filter) error {
	return Write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		return translate(OneRow(Filtered(tx.NewDelete().Model(model), fs).Exec(ctx)), absent)
	})
}

// Write runs do in the transaction that ctx carries, otherwise in one of its own.
func Write(ctx context.Context, db *engine.DB, do func(ctx context.Context, tx bun.IDB) error) error {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	return engine.Translate(db.InTx(ctx, func(ctx context.Context) error { return do(ctx, db.Conn(ctx)) }))
}

// Translate is engine.Translate with the text of RECORD_NOT_FOUND of the table.
func (t Table[R, T]) Translate(err error) error { return translate(err, t.Absent) }

func translate(err error, absent string) error {
	if err = engine.Translate(err); absent != "" && fault.CodeOf(err) == fault.RecordNotFound {
		return fault.New(fault.RecordNotFound, "%s", absent)
	}
	return err
}

// NotFound is RECORD_NOT_FOUND with the text of the table.
func (t Table[R, T]) NotFound() error { return fault.New(fault.RecordNotFound, "%s", t.Absent) }

// OneRow is sql.ErrNoRows for a statement that met no row.
func OneRow(result interface{ RowsAffected() (int64, error) }, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return sql.ErrNoRows
}
