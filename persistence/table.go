package persistence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
)

// table keeps records T as rows R. Every slice of ordinary records is one: it
// declares its row struct, the two conversions and its filters, and the errors,
// the limits and the order of locks are the same everywhere. RECORD_NOT_FOUND is
// a row that is not there, RECORD_ALREADY_EXIST a unique key that is taken. Every
// method joins the transaction that ctx carries.
type table[R, T any] struct {
	// record reads a row; row writes a record. A table that is only read by this
	// has no row.
	record func(R) (T, error)
	row    func(T) R
	// order is that of list; by id where it is not set.
	order keyset
	// fixed are the columns that no change and no save sets, beside the key.
	fixed []string
	// absent is the text of RECORD_NOT_FOUND, where it is not "no such record".
	absent string
	// join, where set, adds columns of other tables to what is read.
	join func(*bun.SelectQuery) *bun.SelectQuery
}

// created and stamps are the instants of a row that the table sets.
type created struct{ CreatedAt int64 }

type stamps struct {
	CreatedAt int64
	UpdatedAt int64
}

func (c *created) stamp(now int64) { c.CreatedAt = now }
func (s *stamps) stamp(now int64)  { s.CreatedAt, s.UpdatedAt = now, now }

// filter is a condition on columns of the table.
type filter struct {
	text string
	args []any
}

func where(text string, args ...any) filter { return filter{text, args} }

func is(column string, value any) filter { return where("? = ?", bun.Ident(column), value) }

// given is a filter by a value that a query names, and none by the zero value.
func given[V comparable](column string, value V) filter {
	if value == *new(V) {
		return filter{}
	}
	return is(column, value)
}

// sent is a filter by a value that a query names, and none by nil.
func sent[V any](column string, value *V) filter {
	if value == nil {
		return filter{}
	}
	return is(column, *value)
}

// among is a filter by any of some values, and none where there are none.
func among[V any](column string, values []V) filter {
	if len(values) == 0 {
		return filter{}
	}
	return where("? IN (?)", bun.Ident(column), bun.List(values))
}

func filtered[Q interface{ Where(string, ...any) Q }](q Q, fs []filter) Q {
	for _, f := range fs {
		if f.text != "" {
			q = q.Where(f.text, f.args...)
		}
	}
	return q
}

// keyset is the order of a list: columns, separated by commas, that together are
// unique and that an index has in this order. A page begins after a row and not
// after a number of rows, so the last page costs what the first one does.
type keyset struct {
	columns    string
	descending bool
}

// part is the part of a list that is wanted; the zero value is all of it.
type part struct {
	where []filter
	after []any // the values of the order's columns in the row before; nil: from the start
	limit int   // 0: no limit
}

// selected is the query of a part of the table.
func (t table[R, T]) selected(q *bun.SelectQuery, p part) *bun.SelectQuery {
	columns := cmp.Or(t.order.columns, "id")
	compare, by := " > ", columns
	if t.order.descending {
		compare, by = " < ", strings.ReplaceAll(columns, ",", " DESC,")+" DESC"
	}
	q = filtered(q, p.where).OrderExpr(by)
	if t.join != nil {
		q = t.join(q)
	}
	if p.after != nil {
		values := strings.Repeat(", ?", len(p.after)-1)
		q = q.Where("("+columns+")"+compare+"(?"+values+")", p.after...)
	}
	if p.limit > 0 {
		q = q.Limit(int64(p.limit))
	}
	return q
}

// list reads a part of the table in its order.
func (t table[R, T]) list(ctx context.Context, db *DB, p part) ([]T, error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	var rows []R
	if err := t.selected(db.Conn(ctx).NewSelect().Model(&rows), p).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = t.record(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// count counts the rows for which all filters hold.
func (t table[R, T]) count(ctx context.Context, db *DB, fs ...filter) (int, error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	q := filtered(db.Conn(ctx).NewSelect().Model((*R)(nil)), fs)
	if t.join != nil {
		q = t.join(q)
	}
	n, err := q.Count(ctx)
	return int(n), translate(err)
}

// find reads the one row for which all filters hold; RECORD_NOT_FOUND.
func (t table[R, T]) find(ctx context.Context, db *DB, fs ...filter) (record T, err error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	var row R
	if err := filtered(db.Conn(ctx).NewSelect().Model(&row), fs).Scan(ctx); err != nil {
		return record, t.translate(err)
	}
	return t.record(row)
}

// add inserts a record and returns the id that the database gives it;
// RECORD_ALREADY_EXIST.
func (t table[R, T]) add(ctx context.Context, db *DB, record T) (id int64, err error) {
	row := t.row(record)
	if s, ok := any(&row).(interface{ stamp(int64) }); ok {
		s.stamp(ms(db.Now()))
	}
	err = write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		return tx.NewInsert().Model(&row).ExcludeColumn("id").Returning("id").Scan(ctx, &id)
	})
	return id, err
}

// change reads the one row for which all filters hold, gives its record to f and
// saves the record that f returns, as one step. It stamps the row before it reads
// it, in one statement: a second change waits for this one. An error of f is
// returned and nothing is saved.
func (t table[R, T]) change(ctx context.Context, db *DB, f func(T) (T, error), fs ...filter) error {
	return write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		var row R
		stamp := tx.NewUpdate().Model(&row).Set("updated_at = ?", ms(db.Now()))
		if err := filtered(stamp, fs).Returning("*").Scan(ctx); err != nil {
			return t.translate(err)
		}
		record, err := t.record(row)
		if err != nil {
			return err
		}
		if record, err = f(record); err != nil {
			return err
		}
		return t.save(ctx, db, record, fs...)
	})
}

// save replaces the columns that are not fixed; RECORD_NOT_FOUND,
// RECORD_ALREADY_EXIST.
func (t table[R, T]) save(ctx context.Context, db *DB, record T, fs ...filter) error {
	row := t.row(record)
	if s, ok := any(&row).(interface{ stamp(int64) }); ok {
		s.stamp(ms(db.Now()))
	}
	return write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		return t.translate(oneRow(filtered(tx.NewUpdate().Model(&row).ExcludeColumn(t.fixed...), fs).Exec(ctx)))
	})
}

// remove deletes the rows for which all filters hold; RECORD_NOT_FOUND when there
// is none.
func (t table[R, T]) remove(ctx context.Context, db *DB, fs ...filter) error {
	return write(ctx, db, func(ctx context.Context, tx bun.IDB) error {
		return t.translate(oneRow(filtered(tx.NewDelete().Model((*R)(nil)), fs).Exec(ctx)))
	})
}

// write runs do in the transaction that ctx carries, otherwise in one of its own.
func write(ctx context.Context, db *DB, do func(ctx context.Context, tx bun.IDB) error) error {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	return translate(db.InTx(ctx, func(ctx context.Context) error { return do(ctx, db.Conn(ctx)) }))
}

func (t table[R, T]) translate(err error) error {
	if t.absent != "" && errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.RecordNotFound, "%s", t.absent)
	}
	return translate(err)
}

// oneRow is sql.ErrNoRows for a statement that met no row.
func oneRow(result interface{ RowsAffected() (int64, error) }, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return sql.ErrNoRows
}
