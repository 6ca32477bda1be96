package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun/dialect/pgdialect"
)

// statement is a write of many rows whose text never changes, so that each
// database plans it once: SQLite runs it for one row after the other, with the
// row's values for $1 …; PostgreSQL runs it once, with an array per column.
//
// It is written as one template for both, in which v is the rows to write and
// v.c the value of column c:
//
//	UPDATE t SET c = v.c {FROM v} WHERE t.id = v.id {RETURNING t.id}
//
// What stands in braces is for PostgreSQL alone.
type statement struct {
	one, all string
	columns  []column
	asks     bool // a SELECT: a row stands when it comes back
	// failFast is all for a transaction that ends by itself: it fails, with
	// refusedCode, unless every row stands. Empty where none can be refused.
	failFast string
	// sole are all and failFast for one row alone, with its values for $1 …: planned
	// without a list to join, they cost half.
	sole, soleFailFast string
	lite               []lite
	places             []int // the column of each place of one row of lite
}

// lite is a statement as SQLite's writer runs it, for so many rows: places
// without a name, for the driver looks the value of each named one up. Only
// INSERTs are there for more rows than one.
type lite struct {
	rows int
	text string
}

// runs are how many rows one INSERT of SQLite writes, the most first: what a
// statement costs beside its rows is then shared. Each run is one more
// statement that is kept prepared. It may leave a part of its rows behind when
// one is refused, which saves the journal of the statement: the transaction is
// rolled back then.
var runs = []int{16, 4}

// column is a field of a row struct.
type column struct {
	name  string
	index []int
	typ   string // of PostgreSQL
}

var (
	places = regexp.MustCompile(`\bv\.(\w+)`)
	braces = regexp.MustCompile(` ?\{([^}]*)\}`)
)

// statementOf reads a template over the columns of R.
func statementOf[R any](template string) *statement {
	return newStatement(template, columnsOf(reflect.TypeFor[R]()))
}

func newStatement(template string, cs []column) *statement {
	s := &statement{columns: cs, asks: strings.HasPrefix(template, "SELECT")}
	arrays, names := make([]string, len(cs)), make([]string, len(cs))
	for i, c := range cs {
		arrays[i], names[i] = fmt.Sprintf("$%d::%s[]", i+1, c.typ), c.name
	}
	s.one = places.ReplaceAllStringFunc(braces.ReplaceAllString(template, ""), func(place string) string {
		for i, c := range cs {
			if place == "v."+c.name {
				return "$" + strconv.Itoa(i+1)
			}
		}
		panic("persistence: " + place + " is no column of: " + template)
	})
	text := parameter.ReplaceAllStringFunc(s.one, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		s.places = append(s.places, n-1)
		return "?"
	})
	s.lite = []lite{{1, text}}
	from := "FROM unnest(" + strings.Join(arrays, ", ") + ") AS v (" + strings.Join(names, ", ") + ")"
	s.all = strings.Replace(braces.ReplaceAllString(template, " $1"), "FROM v", from, 1)
	s.sole = places.ReplaceAllStringFunc(braces.ReplaceAllString(strings.Replace(template, " {FROM v}", "", 1), " $1"),
		func(place string) string {
			i := slices.IndexFunc(cs, func(c column) bool { return place == "v."+c.name })
			return fmt.Sprintf("$%d::%s", i+1, cs[i].typ)
		})
	if s.asks || strings.Contains(s.all, "RETURNING") {
		const failFast = "WITH stand AS (%s) SELECT 1 / (count(*) = %s)::int FROM stand"
		s.failFast, s.soleFailFast = fmt.Sprintf(failFast, s.all, "cardinality("+arrays[0]+")"),
			fmt.Sprintf(failFast, s.sole, "1")
	}
	return s
}

// refusedCode is the code of PostgreSQL with which a statement's failFast fails: the
// one of a division by zero.
const refusedCode = "22012"

// insertOf inserts rows of R; the rest of the statement follows them.
func insertOf[R any](table, rest string) *statement {
	cs := columnsOf(reflect.TypeFor[R]())
	names, values := make([]string, len(cs)), make([]string, len(cs))
	for i, c := range cs {
		names[i], values[i] = c.name, "v."+c.name
	}
	into, of := "INSERT INTO "+table+" ("+strings.Join(names, ", ")+") ", strings.Join(values, ", ")
	s := newStatement(into+"VALUES ("+of+") "+rest, cs)
	row := "(" + strings.Repeat("?, ", len(cs)-1) + "?)"
	for _, n := range slices.Backward(runs) {
		text := strings.Replace(into, "INSERT", "INSERT OR FAIL", 1) + "VALUES " +
			strings.Repeat(row+", ", n-1) + row + braces.ReplaceAllString(" "+rest, "")
		s.lite = append([]lite{{n, text}}, s.lite...)
	}
	many := newStatement(into+"SELECT "+of+" {FROM v} "+rest, cs)
	s.all, s.failFast = many.all, many.failFast
	return s
}

// tables reads the row structs; names do not depend on the dialect.
var tables = pgdialect.New().Tables()

func columnsOf(row reflect.Type) []column {
	var cs []column
	for _, f := range tables.Get(row).Fields {
		if f.AutoIncrement {
			continue
		}
		c := column{name: f.Name, index: f.Index}
		switch t := f.StructField.Type; {
		case t.Kind() == reflect.String:
			c.typ = "text"
		case t.Kind() == reflect.Int16:
			c.typ = "smallint"
		case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
			c.typ = "bigint"
		case t.Kind() == reflect.Bool:
			c.typ = "boolean"
		case t == reflect.TypeFor[[]byte]():
			c.typ = "bytea"
		}
		if c.typ == "" || f.NullZero {
			panic(fmt.Sprintf("persistence: a statement cannot hold %s.%s", row, f.GoName))
		}
		cs = append(cs, c)
	}
	return cs
}

// call is a statement with the rows of one transaction, as a slice of structs.
type boundStatement struct {
	*statement
	rows reflect.Value
	// writes holds, for each row, the index of the write that it belongs to.
	writes []int
	// keys are what PostgreSQL answers of the rows that stand; nil when rows
	// cannot be refused.
	keys []string
}

func bindRows[R any](s *statement, rows []R, writes []int, keys []string) boundStatement {
	return boundStatement{s, reflect.ValueOf(rows), writes, keys}
}

// values are the parameters of one row.
func (c *boundStatement) values(row int) []any {
	out := make([]any, len(c.columns))
	for i := range out {
		out[i] = c.value(row, i)
	}
	return out
}

// value is one parameter of one row, of a type that drivers take.
func (c *boundStatement) value(row, column int) any {
	f := c.rows.Index(row).FieldByIndex(c.columns[column].index)
	switch f.Kind() {
	case reflect.String:
		return f.String()
	case reflect.Bool:
		return f.Bool()
	case reflect.Slice:
		if f.IsNil() {
			return nil
		}
		return f.Bytes()
	default:
		return f.Int()
	}
}

// arrays are the parameters of all rows.
func (c *boundStatement) arrays() []any {
	out := make([]any, len(c.columns))
	for i, col := range c.columns {
		switch col.typ {
		case "text":
			out[i] = gather(c, col, reflect.Value.String)
		case "boolean":
			out[i] = gather(c, col, reflect.Value.Bool)
		case "bytea":
			out[i] = gather(c, col, reflect.Value.Bytes)
		default:
			out[i] = gather(c, col, reflect.Value.Int)
		}
	}
	return out
}

func gather[T any](c *boundStatement, col column, value func(reflect.Value) T) []T {
	out := make([]T, c.rows.Len())
	for i := range out {
		out[i] = value(c.rows.Index(i).FieldByIndex(col.index))
	}
	return out
}

// missing are the writes of rows that did not come back.
func (c *boundStatement) missing(back []string) (missing []int) {
	if c.keys == nil || len(back) == len(c.keys) {
		return nil
	}
	stand := make(map[string]bool, len(back))
	for _, key := range back {
		stand[key] = true
	}
	for i, key := range c.keys {
		if !stand[key] {
			missing = append(missing, c.writes[i])
		}
	}
	return missing
}

// run makes the rows of a bound statement in the slot's transaction and reports the writes
// rows were refused.
func (t *slot) run(ctx context.Context, c *boundStatement) (missing []int, err error) {
	if t.postgres {
		rows, err := t.tx.Tx.QueryContext(ctx, c.all, c.arrays()...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var back []string
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return nil, err
			}
			back = append(back, key)
		}
		return c.missing(back), rows.Err()
	}
	for i := range c.rows.Len() {
		stands := true
		if c.asks {
			var back string
			err = t.tx.Tx.QueryRowContext(ctx, c.one, c.values(i)...).Scan(&back)
			if errors.Is(err, sql.ErrNoRows) {
				stands, err = false, nil
			}
		} else {
			var r sql.Result
			if r, err = t.tx.Tx.ExecContext(ctx, c.one, c.values(i)...); err == nil && c.keys != nil {
				var n int64
				n, err = r.RowsAffected()
				stands = n > 0
			}
		}
		if err != nil {
			return nil, err
		}
		if !stands {
			missing = append(missing, c.writes[i])
		}
	}
	return missing, nil
}

// tableOf is the table of the row struct R.
func tableOf[R any]() string { return tables.Get(reflect.TypeFor[R]()).Name }
