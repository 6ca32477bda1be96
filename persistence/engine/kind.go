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

func statements[W commit.Write](bind func(state State, ws []commit.Write) []boundStatement) Kind {
	return Kind{reflect.TypeFor[W](), kind{bind: bind}}
}

func rowsOf[W commit.Write, R any](ws []commit.Write, row func(W) R) []R {
	rows := make([]R, len(ws))
	for i, w := range ws {
		rows[i] = row(w.(W))
	}
	return rows
}

// Insert creates INSERTs of the rows that row returns.
func Insert[W commit.Write, R any](row func(W) R) Kind {
	return InsertInOrder(func(_ State, w W) R { return row(w) })
}

// InsertInOrder is Insert for rows that depend on the rows before them in the same transaction slot, through the slot's
// state.
func InsertInOrder[W commit.Write, R any](row func(State, W) R) Kind {
	insert := sync.OnceValue(func() *statement { return insertOf[R]("") })
	return statements[W](func(state State, ws []commit.Write) []boundStatement {
		rows := rowsOf(ws, func(w W) R { return row(state, w) })
		return []boundStatement{bindRows(insert(), rows, nil, nil)}
	})
}

// InsertMany creates INSERTs of any number of rows for each write.
func InsertMany[W commit.Write, R any](rows func(W) []R) Kind {
	return many(func() *statement { return insertOf[R]("") }, rows)
}

// UpdateMany is Update with any number of rows for each write, in the order of the writes' rows.
func UpdateMany[W commit.Write, R any](template string, rows func(W) []R) Kind {
	return many(func() *statement { return statementOf[R](template) }, rows)
}

func many[W commit.Write, R any](of func() *statement, rows func(W) []R) Kind {
	s := sync.OnceValue(of)
	return statements[W](func(_ State, ws []commit.Write) []boundStatement {
		all := slices.Concat(rowsOf(inRowOrder(ws), rows)...)
		if len(all) == 0 {
			return nil
		}
		return []boundStatement{bindRows(s(), all, nil, nil)}
	})
}

// Update creates an UPDATE or a DELETE that cannot be refused, from a statement's template. The rows of writes that
// name theirs (changesRow) are changed in the order of their keys: two processes that lock rows in one order cannot
// deadlock.
func Update[W commit.Write, R any](template string, row func(W) R) Kind {
	update := sync.OnceValue(func() *statement { return statementOf[R](template) })
	return statements[W](func(_ State, ws []commit.Write) []boundStatement {
		return []boundStatement{bindRows(update(), rowsOf(inRowOrder(ws), row), nil, nil)}
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
		return do(ctx, tx, rowsOf(ws, func(w W) W { return w }))
	}}}
}

// byKey orders writes by their keys: two processes that lock rows in one order cannot deadlock.
func byKey(ws []commit.Write, key func(commit.Write) string) (order []int, keys []string) {
	order, keys, of := make([]int, len(ws)), make([]string, len(ws)), make([]string, len(ws))
	for i, w := range ws {
		order[i], of[i] = i, key(w)
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(of[a], of[b]) })
	for n, i := range order {
		keys[n] = of[i]
	}
	return order, keys
}

func fenceKey(w commit.Write) string { key, _ := w.(commit.Fence).Fence(); return key }

// Fenced creates a statement with its own condition, from a template that returns the key of the fence. A row that does
// not meet the condition is refused.
func Fenced[W commit.Fence, R any](template string, row func(W) R) Kind {
	return refusable(sync.OnceValue(func() *statement { return statementOf[R](template) }), row)
}

// FencedInsert creates an INSERT that rest (ON CONFLICT … RETURNING) may suppress; then the write is refused.
func FencedInsert[W commit.Fence, R any](rest string, row func(W) R) Kind {
	return refusable(sync.OnceValue(func() *statement { return insertOf[R](rest) }), row)
}

func refusable[W commit.Fence, R any](s func() *statement, row func(W) R) Kind {
	return statements[W](func(_ State, ws []commit.Write) []boundStatement {
		order, keys := byKey(ws, fenceKey)
		rows := make([]R, len(ws))
		for n, i := range order {
			rows[n] = row(ws[i].(W))
		}
		return []boundStatement{bindRows(s(), rows, order, keys)}
	})
}

// Summed creates an UPDATE of one row per key, from a statement's template: all additions to a row are summed before. A
// sum that is out of range is left to the next statement, in which the database refuses it.
func Summed[W commit.Delta[W], R any](template string, row func(W) R) Kind {
	update := sync.OnceValue(func() *statement { return statementOf[R](template) })
	return statements[W](func(_ State, ws []commit.Write) (bound []boundStatement) {
		order, keys := byKey(ws, func(w commit.Write) string { return w.(W).Delta() })
		var sums [][]W // of each statement, in the order of their keys
		n := 0         // of the statement for the present key
		for i, at := range order {
			w := ws[at].(W)
			if i > 0 && keys[i] == keys[i-1] {
				last := &sums[n][len(sums[n])-1]
				if sum, ok := (*last).Plus(w); ok {
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
			rows := make([]R, len(s))
			for i := range s {
				rows[i] = row(s[i])
			}
			bound = append(bound, bindRows(update(), rows, nil, nil))
		}
		return bound
	})
}

// FencedByVersion creates an UPDATE of the listed columns, fenced by version. R has its primary key, version and the
// listed columns. If insert is true, a write of version 0 inserts its row instead.
func FencedByVersion[W commit.Fence, R any](insert bool, row func(W) R, columns ...string) Kind {
	statementsOf := sync.OnceValues(func() (update, add *statement) { return byVersion(reflect.TypeFor[R](), columns) })
	return statements[W](func(_ State, ws []commit.Write) (bound []boundStatement) {
		order, keys := byKey(ws, fenceKey)
		var of [2]struct {
			rows   []R
			writes []int
			keys   []string
		}
		for n, i := range order {
			to := &of[0]
			if _, version := ws[i].(W).Fence(); version == 0 && insert {
				to = &of[1]
			}
			to.rows, to.writes, to.keys = append(to.rows, row(ws[i].(W))), append(to.writes, i),
				append(to.keys, keys[n])
		}
		update, add := statementsOf()
		for i, s := range []*statement{update, add} {
			if len(of[i].rows) > 0 {
				bound = append(bound, bindRows(s, of[i].rows, of[i].writes, of[i].keys))
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
			of[on] = statementOf[guardedRow](strings.NewReplacer("$column", t.Column, "$table", t.Table, "$lock",
				lock).Replace("SELECT v.n {FROM v} WHERE COALESCE((SELECT $column FROM $table WHERE id = v.id$lock), 0) = " +
				"v.version"))
		}
		return of
	})
	return statements[commit.Guard](func(_ State, ws []commit.Write) (bound []boundStatement) {
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
				bound = append(bound, bindRows(s, rows, writes, keys))
			}
		}
		return bound
	})
}
