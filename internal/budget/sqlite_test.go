package budget_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"

	"castellan/domain/kit/storetest"
)

// sqliteTally counts what this process sends to SQLite, and the rows and index entries that it writes.
type sqliteTally struct {
	file       string
	statements texts
	schema     *schema // read at the first query

	mu      sync.Mutex
	pending []change // of the transaction under way
	done    []change // of committed ones
	commits int
	err     error
}

// change is a written row.
type change struct {
	table    string
	old, new []any // nil for an insert, a delete
}

// newSQLiteTally begins to count. It is called before the database is opened, once in a process.
func newSQLiteTally(file string) *sqliteTally {
	s := &sqliteTally{file: file}
	sqlite.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
		h, ok := c.(sqlite.HookRegisterer)
		if !ok {
			return fmt.Errorf("%T has no hooks", c)
		}
		h.RegisterPreUpdateHook(s.changes)
		h.RegisterCommitHook(s.commit)
		h.RegisterRollbackHook(s.rollback)
		return nil
	})
	return s
}

func (s *sqliteTally) statement(_ context.Context, text string) bool {
	s.statements.add(normalised(text))
	return false
}

func (s *sqliteTally) changes(d sqlite.SQLitePreUpdateData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := change{table: d.TableName}
	n := d.Count()
	var err error
	if d.Op != opInsert {
		c.old = make([]any, n)
		err = d.Old(c.old...)
	}
	if d.Op != opDelete {
		c.new = make([]any, n)
		err = errors.Join(err, d.New(c.new...))
	}
	s.pending, s.err = append(s.pending, c), errors.Join(s.err, err)
}

// Codes of SQLite for a change of a row.
const (
	opDelete = 9
	opInsert = 18
)

// commit counts a transaction if it wrote rows.
func (s *sqliteTally) commit() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 {
		s.commits++
	}
	s.done, s.pending = append(s.done, s.pending...), nil
	return 0 // continue
}

func (s *sqliteTally) rollback() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = nil
}

// take returns the counts since the last call.
func (s *sqliteTally) take() (c counts, err error) {
	s.mu.Lock()
	changes, commits := s.done, s.commits
	s.done, s.commits, err = nil, 0, s.err
	s.mu.Unlock()
	if s.schema == nil && err == nil {
		s.schema, err = readSchema(s.file)
	}
	c = counts{Statements: s.statements.take(), Rows: map[string]int{}, Entries: map[string]int{}, Transactions: commits}
	for _, w := range changes {
		c.Rows[w.table]++
		if err == nil {
			err = s.schema.entries(w, c.Entries)
		}
	}
	return c, err
}

// schema has the indexes of a database. It judges rows on a copy of the tables in memory, so that SQLite itself
// computes generated columns and the conditions of partial indexes.
type schema struct {
	copy   *sql.DB
	tables map[string]*table
}

type table struct {
	insert  string // of a row, into the copy
	stored  []int  // columns that are not generated
	indexes []index
}

// index is an index with the query of its entry: no row if the index leaves the row out.
type index struct{ name, entry string }

func readSchema(file string) (*schema, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	s := &schema{tables: map[string]*table{}}
	if s.copy, err = sql.Open("sqlite", ":memory:"); err != nil {
		return nil, err
	}
	s.copy.SetMaxOpenConns(1) // each connection has a separate memory
	// The tables of an index of texts are the database's own; no flow here writes them.
	err = each(db, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "+
		"AND name NOT IN (SELECT name FROM pragma_table_list WHERE type IN ('virtual', 'shadow'))",
		func(name, text string) error {
			s.tables[name] = &table{}
			_, err := s.copy.Exec(text)
			return err
		})
	for name, t := range s.tables {
		if err == nil {
			err = t.read(db, name)
		}
	}
	return s, err
}

// each calls do for each row of two texts.
func each(db *sql.DB, query string, do func(a, b string) error) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		if err := do(a, b); err != nil {
			return err
		}
	}
	return rows.Err()
}

var condition = regexp.MustCompile(`(?is)\bWHERE\b.*$`)

func (t *table) read(db *sql.DB, name string) error {
	var names, marks []string
	n := 0
	columns := "SELECT name, hidden FROM pragma_table_xinfo('" + name + "') ORDER BY cid"
	err := each(db, columns, func(column, hidden string) error {
		if hidden == "0" {
			names, marks, t.stored = append(names, column), append(marks, "?"), append(t.stored, n)
		}
		n++
		return nil
	})
	if err != nil {
		return err
	}
	t.insert = "INSERT INTO " + name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	// A table without row ids is its primary key, which is no separate index. A column that is an expression has no
	// name here: it is read from the definition of its index.
	return each(db, `SELECT i.name, 'SELECT ' ||
			group_concat('quote(' || coalesce(x.name, 'an_expression') || ')', ' || ') || ' FROM `+name+` ' ||
			coalesce((SELECT sql FROM sqlite_master WHERE type = 'index' AND name = i.name), '')
		FROM pragma_table_list t JOIN pragma_index_list(t.name) i JOIN pragma_index_xinfo(i.name) x
		WHERE t.schema = 'main' AND t.name = '`+name+`' AND x.key AND NOT (t.wr AND i.origin = 'pk') GROUP BY i.name`,
		func(of, query string) error {
			from := " FROM " + name + " "
			head, definition, _ := strings.Cut(query, from)
			if strings.Contains(head, "an_expression") {
				head = "SELECT " + strings.Join(quotedColumns(definition), " || ")
			}
			t.indexes = append(t.indexes, index{of, head + from + condition.FindString(definition)})
			return nil
		})
}

// quotedColumns lists the columns of an index's definition, each as quote(…).
func quotedColumns(definition string) (columns []string) {
	_, list, _ := strings.Cut(definition, "(")
	depth, from := 0, 0
	for i, c := range list {
		switch {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0 && (c == ',' || c == ')'):
			columns = append(columns, "quote("+list[from:i]+")")
			from = i + 1
		}
		if depth == 0 && c == ')' && from == i+1 {
			break
		}
	}
	return columns
}

// entries counts the indexes that get an entry by a change: those that did not contain the row, and those whose columns
// change.
func (s *schema) entries(c change, by map[string]int) error {
	t := s.tables[c.table]
	if t == nil || c.new == nil {
		return nil
	}
	had, err := s.entriesOf(t, c.old)
	if err != nil {
		return err
	}
	has, err := s.entriesOf(t, c.new)
	for name, entry := range has {
		if before, was := had[name]; !was || before != entry {
			by[name]++
		}
	}
	return err
}

// entriesOf returns the entries of a row, by index.
func (s *schema) entriesOf(t *table, row []any) (map[string]string, error) {
	entries := map[string]string{}
	if row == nil {
		return entries, nil
	}
	tx, err := s.copy.Begin()
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	values := make([]any, len(t.stored))
	for i, column := range t.stored {
		values[i] = row[column]
	}
	if _, err := tx.Exec(t.insert, values...); err != nil {
		return nil, err
	}
	for _, i := range t.indexes {
		var entry sql.NullString
		switch err := tx.QueryRow(i.entry).Scan(&entry); {
		case err == nil:
			entries[i.name] = entry.String
		case !errors.Is(err, sql.ErrNoRows):
			return nil, fmt.Errorf("%s: %w", i.name, err)
		}
	}
	return entries, nil
}

var (
	quoted = regexp.MustCompile(`(?i)(?:\b[xe])?'(?:[^']|'')*'`)
	number = regexp.MustCompile(`(^|[^\w$.])-?\d+(?:\.\d+)?\b`)
	listed = regexp.MustCompile(`\(\?(?:, ?\?)+\)`)
)

// normalised returns a statement without its values, so that the same statement has the same text each time.
func normalised(text string) string {
	text = quoted.ReplaceAllString(text, "?")
	return listed.ReplaceAllString(number.ReplaceAllString(text, "${1}?"), "(?)")
}

// An entry is counted if an index gets one: for a new row, and for a changed column, under the condition of the index.
func TestEntriesOfSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	db := storetest.Value(sql.Open("sqlite", "file:"+file))(t)
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE t (id TEXT PRIMARY KEY, state INTEGER NOT NULL, name TEXT NOT NULL,
			upper TEXT GENERATED ALWAYS AS (upper(name)) VIRTUAL, size INTEGER NOT NULL);
		CREATE INDEX t_open ON t (id) WHERE state = 0;
		CREATE INDEX t_upper ON t (upper, id);
		CREATE TABLE w (id TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;
		CREATE INDEX w_v ON w (v)`); err != nil {
		t.Fatal(err)
	}
	s := storetest.Value(readSchema(file))(t)
	row := func(state int64, name string, size int64) []any { return []any{"a", state, name, nil, size} }
	for _, c := range []struct {
		name string
		change
		want map[string]int
	}{
		{"insert", change{"t", nil, row(0, "x", 1)}, map[string]int{"sqlite_autoindex_t_1": 1, "t_open": 1, "t_upper": 1}},
		{"insert beside a condition", change{"t", nil, row(1, "x", 1)},
			map[string]int{"sqlite_autoindex_t_1": 1, "t_upper": 1}},
		{"a column without an index", change{"t", row(0, "x", 1), row(0, "x", 2)}, map[string]int{}},
		{"a generated column", change{"t", row(0, "x", 1), row(0, "y", 1)}, map[string]int{"t_upper": 1}},
		{"a generated column that stays", change{"t", row(0, "x", 1), row(0, "X", 1)}, map[string]int{}},
		{"into a condition", change{"t", row(1, "x", 1), row(0, "x", 1)}, map[string]int{"t_open": 1}},
		{"out of a condition", change{"t", row(0, "x", 1), row(1, "x", 1)}, map[string]int{}},
		{"delete", change{"t", row(0, "x", 1), nil}, map[string]int{}},
		{"without row ids", change{"w", nil, []any{"a", "v"}}, map[string]int{"w_v": 1}},
	} {
		got := map[string]int{}
		if err := s.entries(c.change, got); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
