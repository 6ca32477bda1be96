package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"castellan/domain/kit/commit"
)

// Kinds are all kinds of writes, in the order in which their statements run in a transaction. Guards come first, then
// writes that a fence may refuse, then everything else, and last the additions to rows that many units change.
type Kinds struct {
	Guards map[commit.GuardedTable]Versioned
	Fences []Kind
	Writes []Kind
	Deltas []Kind
}

// Versioned is a table with a column for the version of its rows. A guard locks a row of a Locked table against changes
// until the end of its transaction; any other is checked in the order of the statements alone.
type Versioned struct {
	Table, Column string
	Locked        bool
}

// Kind defines how the writes of one type are executed. The functions below create it.
type Kind struct {
	write reflect.Type
	kind
}

// Function returns the type of the writes that run a function of their slice (Each, All), "" for a kind that consists
// of statements.
func (k Kind) Function() string {
	if k.run == nil {
		return ""
	}
	return k.write.String()
}

// kind executes the writes of one type in one transaction: either bind converts them to statements, or run executes its
// own function.
type kind struct {
	order     int
	refusable bool // a guard or a fence
	bind      func(state State, ws []commit.Write) []boundStatement
	run       func(ctx context.Context, tx bun.Tx, ws []commit.Write) error
}

// kindSet finds the kind of a write.
type kindSet struct {
	byType  map[reflect.Type]*kind
	guarded map[commit.GuardedTable]Versioned
}

// of returns nil for a write without a kind.
func (s kindSet) of(w commit.Write) *kind {
	if g, is := w.(commit.Guard); is {
		if _, known := s.guarded[g.On]; !known {
			return nil
		}
	}
	return s.byType[reflect.TypeOf(w)]
}

func (ks Kinds) set() (kindSet, error) {
	set := kindSet{map[reflect.Type]*kind{}, ks.Guards}
	for i, list := range [][]Kind{{guards(ks.Guards)}, ks.Fences, ks.Writes, ks.Deltas} {
		for _, k := range list {
			if set.byType[k.write] != nil {
				return set, fmt.Errorf("persistence: two kinds for %s", k.write)
			}
			k.order, k.refusable = len(set.byType), i < 2
			set.byType[k.write] = &k.kind
		}
	}
	return set, nil
}

// conversion makes rows of writes. The program has a copy of set for each pair of types, and one copy of everything
// else, as long as no generic function inlines that.
type conversion struct {
	write, rows reflect.Type // the writes, and a slice of row structs
	row         any          // the function of a slice, which set calls
	set         func(row any, state State, w commit.Write, to any)
}

func converted[W commit.Write, R any](row func(W) R) conversion {
	return conversion{reflect.TypeFor[W](), reflect.TypeFor[[]R](), row, set[W, R]}
}

func set[W commit.Write, R any](row any, _ State, w commit.Write, to any) {
	*to.(*R) = row.(func(W) R)(w.(W))
}

func setInOrder[W commit.Write, R any](row any, state State, w commit.Write, to any) {
	*to.(*R) = row.(func(State, W) R)(state, w.(W))
}

// of returns the rows of writes, in their order.
func (c *conversion) of(state State, ws []commit.Write) reflect.Value {
	rows := reflect.MakeSlice(c.rows, len(ws), len(ws))
	for i, w := range ws {
		c.set(c.row, state, w, rows.Index(i).Addr().Interface())
	}
	return rows
}

// statement makes one for the rows at its first use: of is parsed or insertInto.
func (c *conversion) statement(of func(row reflect.Type, text string) *statement, text string) func() *statement {
	return sync.OnceValue(func() *statement { return of(c.rows.Elem(), text) })
}

// Insert creates INSERTs of the rows that row returns.
func Insert[W commit.Write, R any](row func(W) R) Kind {
	return inserts(converted(row))
}

// InsertInOrder is Insert for rows that depend on the rows before them in the same transaction slot, through the slot's
// state.
func InsertInOrder[W commit.Write, R any](row func(State, W) R) Kind {
	return inserts(conversion{reflect.TypeFor[W](), reflect.TypeFor[[]R](), row, setInOrder[W, R]})
}

//go:noinline
func inserts(c conversion) Kind {
	insert := c.statement(insertInto, "")
	return statements(c.write, func(state State, ws []commit.Write) []boundStatement {
		return []boundStatement{{insert(), c.of(state, ws), nil, nil}}
	})
}

func statements(write reflect.Type, bind func(state State, ws []commit.Write) []boundStatement) Kind {
	return Kind{write, kind{bind: bind}}
}

// InsertMany creates INSERTs of any number of rows for each write.
func InsertMany[W commit.Write, R any](rows func(W) []R) Kind {
	return many(func() *statement { return insertInto(reflect.TypeFor[R](), "") }, rows)
}

// UpdateMany is Update with any number of rows for each write, in the order of the writes' rows.
func UpdateMany[W commit.Write, R any](template string, rows func(W) []R) Kind {
	return many(func() *statement { return parsed(reflect.TypeFor[R](), template) }, rows)
}

func many[W commit.Write, R any](of func() *statement, rows func(W) []R) Kind {
	s := sync.OnceValue(of)
	return statements(reflect.TypeFor[W](), func(_ State, ws []commit.Write) []boundStatement {
		var all []R
		for _, w := range inRowOrder(ws) {
			all = append(all, rows(w.(W))...)
		}
		if len(all) == 0 {
			return nil
		}
		return []boundStatement{{s(), reflect.ValueOf(all), nil, nil}}
	})
}

// Update creates an UPDATE or a DELETE that cannot be refused, from a statement's template. The rows of writes that
// name theirs (changesRow) are changed in the order of their keys: two processes that lock rows in one order cannot
// deadlock.
func Update[W commit.Write, R any](template string, row func(W) R) Kind {
	return updates(template, converted(row))
}

//go:noinline
func updates(template string, c conversion) Kind {
	update := c.statement(parsed, template)
	return statements(c.write, func(state State, ws []commit.Write) []boundStatement {
		return []boundStatement{{update(), c.of(state, inRowOrder(ws)), nil, nil}}
	})
}

// changesRow is an unfenced write that changes one row. The writer never puts two units that change the same row into
// one transaction.
type changesRow interface{ Row() string }

// inRowOrder returns writes of one type in the order of their rows, or unchanged if the type does not name its row.
func inRowOrder(ws []commit.Write) []commit.Write {
	if _, names := ws[0].(changesRow); !names || len(ws) == 1 {
		return ws
	}
	sorted := slices.Clone(ws)
	slices.SortStableFunc(sorted, func(a, b commit.Write) int {
		return strings.Compare(a.(changesRow).Row(), b.(changesRow).Row())
	})
	return sorted
}

// Several creates the statements of several kinds for one type of write, in their order. None of them can refuse a
// write.
func Several(kinds ...Kind) Kind {
	k := Kind{write: kinds[0].write}
	k.bind = func(state State, ws []commit.Write) (bound []boundStatement) {
		for _, each := range kinds {
			bound = append(bound, each.bind(state, ws)...)
		}
		return bound
	}
	return k
}

// Each runs do for one write after the other, for writes that are rare. A unit with such a write leaves the executor:
// it gets a transaction with one round trip for each statement (Committed.Functions). Use statements for every write of
// a login, a challenge, a push, a socket or the ledger.
func Each[W commit.Write](do func(ctx context.Context, tx bun.Tx, w W) error) Kind {
	return All(func(ctx context.Context, tx bun.Tx, ws []W) error {
		for _, w := range ws {
			if err := do(ctx, tx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// All runs do once for all writes of a transaction, for writes that are rare (Each).
func All[W commit.Write](do func(ctx context.Context, tx bun.Tx, ws []W) error) Kind {
	return Kind{reflect.TypeFor[W](), kind{run: func(ctx context.Context, tx bun.Tx, ws []commit.Write) error {
		typed := make([]W, len(ws))
		for i, w := range ws {
			typed[i] = w.(W)
		}
		return do(ctx, tx, typed)
	}}}
}

// byKey orders writes by their keys: two processes that lock rows in one order cannot deadlock.
func byKey(ws []commit.Write, key func(commit.Write) string) (sorted []commit.Write, order []int, keys []string) {
	if len(ws) == 1 {
		return ws, []int{0}, []string{key(ws[0])}
	}
	sorted, order = make([]commit.Write, len(ws)), make([]int, len(ws))
	keys, of := make([]string, len(ws)), make([]string, len(ws))
	for i, w := range ws {
		order[i], of[i] = i, key(w)
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(of[a], of[b]) })
	for n, i := range order {
		sorted[n], keys[n] = ws[i], of[i]
	}
	return sorted, order, keys
}

func fenceKey(w commit.Write) string { key, _ := w.(commit.Fence).Fence(); return key }

// Fenced creates a statement with its own condition, from a template that returns the key of the fence. A row that does
// not meet the condition is refused.
func Fenced[W commit.Fence, R any](template string, row func(W) R) Kind {
	c := converted(row)
	return refusable(c, c.statement(parsed, template))
}

// FencedInsert creates an INSERT that rest (ON CONFLICT … RETURNING) may suppress; then the write is refused.
func FencedInsert[W commit.Fence, R any](rest string, row func(W) R) Kind {
	c := converted(row)
	return refusable(c, c.statement(insertInto, rest))
}

//go:noinline
func refusable(c conversion, s func() *statement) Kind {
	return statements(c.write, func(state State, ws []commit.Write) []boundStatement {
		sorted, order, keys := byKey(ws, fenceKey)
		return []boundStatement{{s(), c.of(state, sorted), order, keys}}
	})
}

// Summed creates an UPDATE of one row per key, from a statement's template: all additions to a row are summed before. A
// sum that is out of range is left to the next statement, in which the database refuses it.
func Summed[W commit.Delta[W], R any](template string, row func(W) R) Kind {
	c := converted(row)
	update := c.statement(parsed, template)
	return statements(c.write, func(state State, ws []commit.Write) (bound []boundStatement) {
		sorted, _, keys := byKey(ws, func(w commit.Write) string { return w.(W).Delta() })
		var sums [][]commit.Write // of each statement, in the order of their keys
		n := 0                    // of the statement for the present key
		for i, w := range sorted {
			if i > 0 && keys[i] == keys[i-1] {
				last := &sums[n][len(sums[n])-1]
				if sum, ok := (*last).(W).Plus(w.(W)); ok {
					*last = sum
					continue
				}
				n++
			} else {
				n = 0
			}
			if n == len(sums) {
				sums = append(sums, nil)
			}
			sums[n] = append(sums[n], w)
		}
		for _, s := range sums {
			bound = append(bound, boundStatement{update(), c.of(state, s), nil, nil})
		}
		return bound
	})
}

// FencedByVersion creates an UPDATE of the listed columns, fenced by version. R has its primary key, version and the
// listed columns. If insert is true, a write of version 0 inserts its row instead.
func FencedByVersion[W commit.Fence, R any](insert bool, row func(W) R, columns ...string) Kind {
	return versioned(insert, converted(row), columns)
}

//go:noinline
func versioned(insert bool, c conversion, columns []string) Kind {
	statementsOf := sync.OnceValues(func() (update, add *statement) { return byVersion(c.rows.Elem(), columns) })
	return statements(c.write, func(state State, ws []commit.Write) (bound []boundStatement) {
		sorted, order, keys := byKey(ws, fenceKey)
		var of [2]struct {
			sorted []commit.Write
			writes []int
			keys   []string
		}
		for n, w := range sorted {
			to := &of[0]
			if _, version := w.(commit.Fence).Fence(); version == 0 && insert {
				to = &of[1]
			}
			to.sorted, to.writes, to.keys = append(to.sorted, w), append(to.writes, order[n]), append(to.keys, keys[n])
		}
		update, add := statementsOf()
		for i, s := range []*statement{update, add} {
			if len(of[i].sorted) > 0 {
				bound = append(bound, boundStatement{s, c.of(state, of[i].sorted), of[i].writes, of[i].keys})
			}
		}
		return bound
	})
}

func byVersion(row reflect.Type, columns []string) (update, add *statement) {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = v." + c
	}
	t := strings.NewReplacer("$t", tables.Get(row).Name, "$id", keyOf(row), "$set", strings.Join(set, ", "))
	return parsed(row, t.Replace("UPDATE $t SET $set, version = v.version + 1 {FROM v} "+
			"WHERE $t.$id = v.$id AND $t.version = v.version {RETURNING $t.$id}")),
		insertInto(row, t.Replace("ON CONFLICT ($id) DO NOTHING {RETURNING $id}"))
}

// guardedRow is the condition that a row still has a version; n distinguishes the conditions of one transaction. A
// missing row has version 0.
type guardedRow struct {
	N       string
	ID      string
	Version int64
}

// guards checks commit.Guard values, one statement per guarded table.
func guards(tables map[commit.GuardedTable]Versioned) Kind {
	statementsOf := sync.OnceValue(func() map[commit.GuardedTable]*statement {
		of := map[commit.GuardedTable]*statement{}
		for on, t := range tables {
			lock := ""
			if t.Locked {
				lock = " {FOR SHARE}" // SQLite has one writer
			}
			of[on] = parsed(reflect.TypeFor[guardedRow](), strings.NewReplacer("$column", t.Column, "$table", t.Table,
				"$lock", lock).Replace("SELECT v.n {FROM v} "+
				"WHERE COALESCE((SELECT $column FROM $table WHERE id = v.id$lock), 0) = v.version"))
		}
		return of
	})
	return statements(reflect.TypeFor[commit.Guard](), func(_ State, ws []commit.Write) (bound []boundStatement) {
		for on, s := range statementsOf() {
			var rows []guardedRow
			var writes []int
			var keys []string
			for i, w := range ws {
				if g := w.(commit.Guard); g.On == on {
					n := strconv.Itoa(i)
					rows = append(rows, guardedRow{n, g.Key, g.Version})
					writes, keys = append(writes, i), append(keys, n)
				}
			}
			if len(rows) > 0 {
				bound = append(bound, boundStatement{s, reflect.ValueOf(rows), writes, keys})
			}
		}
		return bound
	})
}
