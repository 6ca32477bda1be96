package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// The rows of a prepared query are read below database/sql. The overhead of database/sql around a query (locks,
// separate rows, conversions of every value) costs as much as the answer
// (docs/decisions/0002-group-commit-and-its-executors.md). database/sql still manages the connections.

// eachRow is called for one row after the other; set fills the fields of a row.
type eachRow func(set func(row reflect.Value) error) error

// fetch reads the rows of p. It calls each for one row after the other, with a function that sets the fields of a row
// struct.
func (db *DB) fetch(ctx context.Context, p *preparedQuery, args []any, each eachRow) (err error) {
	for range 3 { // a connection that died while idle has executed no query
		if err = db.fetchOnce(ctx, p, args, each); err == nil || !pgconn.SafeToRetry(err) {
			break
		}
	}
	return err
}

func (db *DB) fetchOnce(ctx context.Context, p *preparedQuery, args []any, each eachRow) (err error) {
	c, inSnapshot := ctx.Value(snapshotKey{}).(*sql.Conn)
	if !inSnapshot {
		if c, err = db.read.DB.Conn(ctx); err != nil {
			return err
		}
		defer c.Close()
	}
	return c.Raw(func(conn any) error {
		if db.Postgres() {
			return p.fromPostgres(ctx, conn.(*stdlib.Conn).Conn(), args, each)
		}
		return db.readers.of(conn.(driver.Conn)).fetch(p, args, each)
	})
}

type snapshotKey struct{}

// Snapshot runs fn with a context in which Find and Ask read one state of the database, for as long as fn runs, and
// without blocking a writer. It is for long reads page by page: every query must find its page by an index that has its
// order.
func (db *DB) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	c, err := db.read.DB.Conn(ctx)
	if err != nil {
		return Translate(err)
	}
	defer c.Close()
	begin := []string{"BEGIN"}
	if db.Postgres() {
		// Before its first ANALYZE the planner assumes that a loaded table is small, and would sort the rest of it for
		// every page.
		begin = []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL enable_sort = off",
			"SET LOCAL enable_bitmapscan = off", "SET LOCAL enable_seqscan = off"}
	}
	defer c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	for _, text := range begin {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return Translate(err)
		}
	}
	return fn(context.WithValue(ctx, snapshotKey{}, c))
}

func (p *preparedQuery) fromPostgres(ctx context.Context, conn *pgx.Conn, args []any, each eachRow) error {
	rows, err := conn.Query(ctx, p.text, append([]any{pgx.QueryExecModeCacheStatement}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		fields, err := p.layout(func() (names []string) {
			for _, d := range rows.FieldDescriptions() {
				names = append(names, d.Name)
			}
			return names
		})
		if err != nil {
			return err
		}
		if err := each(func(row reflect.Value) error { return put(row, fields, values) }); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readers are the reading connections of SQLite, with their prepared statements.
type readers struct{ sync.Map }

type reader struct {
	mu       sync.Mutex // against close; a connection has one user at a time
	conn     driver.Conn
	prepared map[string]sqliteStatement
	values   []driver.Value
	args     []driver.NamedValue
}

func (r *readers) of(conn driver.Conn) *reader {
	if known, ok := r.Load(conn); ok {
		return known.(*reader)
	}
	known, _ := r.LoadOrStore(conn, &reader{conn: conn, prepared: map[string]sqliteStatement{}})
	return known.(*reader)
}

// close closes the statements before their connections are closed. The statements of a dropped connection, such as one
// with an interrupted read, are gone already.
func (r *readers) close() {
	r.Range(func(_, known any) bool {
		k := known.(*reader)
		k.mu.Lock()
		defer k.mu.Unlock()
		if v, can := k.conn.(driver.Validator); can && !v.IsValid() {
			return true
		}
		for text, s := range k.prepared {
			s.Close()
			delete(k.prepared, text)
		}
		return true
	})
}

func (r *reader) fetch(p *preparedQuery, args []any, each eachRow) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := prepareSQLite(r.conn, r.prepared, p.text)
	if err != nil {
		return err
	}
	r.args = r.args[:0]
	for i, a := range args {
		r.args = append(r.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	// Watching a context costs more than the answer, which takes microseconds.
	rows, err := s.QueryContext(context.Background(), r.args)
	if err != nil {
		return err
	}
	defer rows.Close()
	fields, err := p.layout(rows.Columns)
	if err != nil {
		return err
	}
	for len(r.values) < len(fields) {
		r.values = append(r.values, nil)
	}
	values := r.values[:len(fields)]
	defer clear(values)
	for {
		if err := rows.Next(values); err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		if err := each(func(row reflect.Value) error { return put(row, fields, values) }); err != nil {
			return err
		}
	}
}

// layout returns, for each column of the answer, the field of the row struct.
func (p *preparedQuery) layout(columns func() []string) ([][]int, error) {
	p.once.Do(func() {
		fields := tables.Get(p.row).FieldMap
		for _, name := range columns() {
			f := fields[name]
			if f == nil {
				p.layoutErr = fmt.Errorf("persistence: %s has no field for the column %s", p.row, name)
				return
			}
			p.fields = append(p.fields, f.Index)
		}
	})
	return p.fields, p.layoutErr
}

// put sets the fields of a row; NULL becomes the zero value.
func put[V any](row reflect.Value, fields [][]int, values []V) error {
	for i, value := range values {
		f := row.FieldByIndex(fields[i])
		switch v := any(value).(type) {
		case nil:
			f.SetZero()
		case string:
			f.SetString(v)
		case bool:
			f.SetBool(v)
		case []byte:
			f.SetBytes(v)
		case int64:
			if f.Kind() == reflect.Bool {
				f.SetBool(v != 0)
			} else {
				f.SetInt(v)
			}
		case int32:
			f.SetInt(int64(v))
		case int16:
			f.SetInt(int64(v))
		default:
			return fmt.Errorf("persistence: a column contains %T", value)
		}
	}
	return nil
}

// one fills a single row, all fills a slice of rows.
func one(into any, found *bool) eachRow {
	return func(set func(reflect.Value) error) error {
		if *found {
			return nil
		}
		*found = true
		return set(reflect.ValueOf(into).Elem())
	}
}

func all(into any) eachRow {
	slice := reflect.ValueOf(into).Elem()
	slice.SetLen(0)
	return func(set func(reflect.Value) error) error {
		slice.Grow(1)
		slice.SetLen(slice.Len() + 1)
		return set(slice.Index(slice.Len() - 1))
	}
}
