package engine

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/uptrace/bun/dialect/pgdialect"
)

// statement is a write of many rows whose text never changes, so that each database plans it once. PostgreSQL runs it
// once for all rows, with an array per column; SQLite runs it for one row after the other.
//
// It is written as one template for both, in which v is the rows to write and v.c the value of column c:
//
//	UPDATE t SET c = v.c {FROM v} WHERE t.id = v.id {RETURNING t.id}
//
// The parts in braces are for PostgreSQL alone. A DELETE has {USING v}.
type statement struct {
	columns []column
	// postgres is the text of PostgreSQL; its parameters are the columns.
	postgres string
	// failFast is postgres for a transaction that ends by itself: it fails with refusedCode unless every row is
	// accepted. It is empty if no row can be refused.
	failFast string
	// sqlite is the text of SQLite, with a ? for each parameter; params are their columns. The driver would look up the
	// value of a numbered parameter.
	sqlite string
	params []int
	asks   bool // a SELECT: a row is accepted when it is returned
}

// column is a field of a row struct.
type column struct {
	name  string
	index []int
	typ   string // of PostgreSQL
	oid   uint32 // of typ
}

var (
	valueRefs = regexp.MustCompile(`\bv\.(\w+)`)
	valueRows = regexp.MustCompile(`\b(FROM|USING) v\b`)
	braces    = regexp.MustCompile(` ?\{([^}]*)\}`)
)

// parsed parses a template over the columns of a row struct.
func parsed(row reflect.Type, template string) *statement {
	return newStatement(template, template, columnsOf(row))
}

// insertInto inserts rows; rest is the remainder of the statement.
func insertInto(row reflect.Type, rest string) *statement {
	table, cs := tables.Get(row).Name, columnsOf(row)
	names, of := make([]string, len(cs)), make([]string, len(cs))
	for i, c := range cs {
		names[i], of[i] = c.name, "v."+c.name
	}
	into, all := "INSERT INTO "+table+" ("+strings.Join(names, ", ")+") ", strings.Join(of, ", ")
	return newStatement(into+"SELECT "+all+" {FROM v} "+rest, into+"VALUES ("+all+") "+rest, cs)
}

func newStatement(postgres, sqlite string, cs []column) *statement {
	s := &statement{columns: cs, asks: strings.HasPrefix(sqlite, "SELECT")}
	arrays, names := make([]string, len(cs)), make([]string, len(cs))
	for i, c := range cs {
		arrays[i], names[i] = fmt.Sprintf("$%d::%s[]", i+1, c.typ), c.name
	}
	v := " unnest(" + strings.Join(arrays, ", ") + ") AS v (" + strings.Join(names, ", ") + ")"
	s.postgres = valueRows.ReplaceAllStringFunc(braces.ReplaceAllString(postgres, " $1"), func(rows string) string {
		return strings.TrimSuffix(rows, " v") + v
	})
	if s.asks || strings.Contains(s.postgres, "RETURNING") {
		s.failFast = "WITH stand AS (" + s.postgres + ") " +
			"SELECT 1 / (count(*) = cardinality(" + arrays[0] + "))::int FROM stand"
	}
	s.sqlite = valueRefs.ReplaceAllStringFunc(braces.ReplaceAllString(sqlite, ""), func(value string) string {
		i := slices.IndexFunc(cs, func(c column) bool { return value == "v."+c.name })
		if i < 0 {
			panic("persistence: " + value + " is no column of: " + sqlite)
		}
		s.params = append(s.params, i)
		return "?"
	})
	return s
}

// refusedCode is the PostgreSQL code with which a statement's failFast fails: a division by zero.
const refusedCode = "22012"

// tables reads the row structs; names do not depend on the dialect.
var tables = pgdialect.New().Tables()

// keyOf returns the column of a row struct that is its primary key: id unless the struct names another one.
func keyOf(row reflect.Type) string {
	for _, key := range tables.Get(row).PKs {
		return key.Name
	}
	return "id"
}

// columnsOf returns the columns of a row struct that a statement writes.
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
		c.oid = elementOIDs[c.typ]
		cs = append(cs, c)
	}
	return cs
}
