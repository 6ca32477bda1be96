package persistence

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"castellan/domain/commit"
)

// inserts plans INSERTs of the rows that row makes.
func inserts[W commit.Write, R any](row func(*DBRow, W) R) planFor {
	var insert = sync.OnceValue(func() *statement {
		return insertOf[R](tables.Get(reflect.TypeFor[R]()).Name, "")
	})
	return planFor{reflect.TypeFor[W](), plan{calls: func(l *lane, ws []commit.Write) []call {
		return []call{callOf(insert(), rowsOf(l, ws, row), nil, nil)}
	}}}
}

// DBRow is what a row constructor may know of its transaction.
type DBRow struct{ l *lane }

func rowsOf[W commit.Write, R any](l *lane, ws []commit.Write, row func(*DBRow, W) R) []R {
	rows, r := make([]R, len(ws)), &DBRow{l}
	for i, w := range ws {
		rows[i] = row(r, w.(W))
	}
	return rows
}

// fences plans an UPDATE of the listed columns, fenced by version. Rows are in
// key order, so that two processes cannot deadlock. R has the columns id,
// version and the listed ones. A write of version 0 inserts its row instead,
// where insert is true.
func fences[W commit.Fence, R any](table string, insert bool, row func(*DBRow, W) R, columns ...string) planFor {
	statements := sync.OnceValues(func() (update, add *statement) {
		set := make([]string, len(columns))
		for i, c := range columns {
			set[i] = c + " = v." + c
		}
		t := strings.NewReplacer("$t", table, "$set", strings.Join(set, ", "))
		return statementOf[R](t.Replace("UPDATE $t SET $set, version = v.version + 1 {FROM v} WHERE $t.id = v.id AND $t.version = v.version {RETURNING $t.id}")),
			insertOf[R](table, "ON CONFLICT (id) DO NOTHING {RETURNING id}")
	})
	return planFor{reflect.TypeFor[W](), plan{calls: func(l *lane, ws []commit.Write) (calls []call) {
		order := make([]int, len(ws))
		for i := range order {
			order[i] = i
		}
		key := func(i int) string { k, _ := ws[i].(W).Fence(); return k }
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(key(a), key(b)) })
		var rows [2][]R
		var writes [2][]int
		var keys [2][]string
		for _, i := range order {
			kind := 0
			if _, version := ws[i].(W).Fence(); version == 0 && insert {
				kind = 1
			}
			rows[kind] = append(rows[kind], row(&DBRow{l}, ws[i].(W)))
			writes[kind], keys[kind] = append(writes[kind], i), append(keys[kind], key(i))
		}
		update, add := statements()
		for kind, s := range []*statement{update, add} {
			if len(rows[kind]) > 0 {
				calls = append(calls, callOf(s, rows[kind], writes[kind], keys[kind]))
			}
		}
		return calls
	}}}
}

// updates plans an UPDATE that nothing refuses, from a statement's template.
func updates[W commit.Write, R any](template string, row func(W) R) planFor {
	update := sync.OnceValue(func() *statement { return statementOf[R](template) })
	return planFor{reflect.TypeFor[W](), plan{calls: func(l *lane, ws []commit.Write) []call {
		return []call{callOf(update(), rowsOf(l, ws, func(_ *DBRow, w W) R { return row(w) }), nil, nil)}
	}}}
}

// each plans one statement per write, for writes that are rare.
func each[W commit.Write](do func(ctx context.Context, tx bun.Tx, w W) error) planFor {
	return planFor{reflect.TypeFor[W](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) ([]int, error) {
		for _, w := range ws {
			if err := do(ctx, l.tx, w.(W)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}}
}

// together plans one statement for all writes of a type.
func together[W commit.Write](do func(ctx context.Context, tx bun.Tx, ws []W) error) planFor {
	return planFor{reflect.TypeFor[W](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) ([]int, error) {
		typed := make([]W, len(ws))
		for i, w := range ws {
			typed[i] = w.(W)
		}
		return nil, do(ctx, l.tx, typed)
	}}}
}

// guardedRow is the condition that a row still has a version; n tells the
// conditions of one transaction apart. A row that is not there has version 0.
type guardedRow struct {
	N       string
	ID      string
	Version int64
}

// guards checks commit.Guard values, one statement per guarded table.
var guards = planFor{reflect.TypeFor[commit.Guard](), plan{calls: func(_ *lane, ws []commit.Write) (calls []call) {
	for on, s := range guardStatements() {
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
			calls = append(calls, callOf(s, rows, writes, keys))
		}
	}
	return calls
}}}

var guardStatements = sync.OnceValue(func() map[commit.GuardedTable]*statement {
	return map[commit.GuardedTable]*statement{
		commit.UserCredentials: statementOf[guardedRow]("SELECT v.n {FROM v} WHERE COALESCE((SELECT cv FROM users WHERE id = v.id), 0) = v.version"),
		commit.AttemptBudget:   statementOf[guardedRow]("SELECT v.n {FROM v} WHERE COALESCE((SELECT version FROM attempt_budget WHERE id = v.id), 0) = v.version"),
	}
})
