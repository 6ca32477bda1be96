package persistence

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/commit"
)

// inserts plans one multi-row INSERT of the rows that row makes.
func inserts[W commit.Write, R any](row func(*DBRow, W) R) planFor {
	return planFor{reflect.TypeFor[W](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) ([]int, error) {
		rows := rowsOf(l, ws, row)
		_, err := l.tx.NewInsert().Model(&rows).Returning("NULL").Exec(ctx)
		return nil, err
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

// fences plans one multi-row UPDATE of the listed columns, fenced by version:
//
//	WITH v AS (VALUES …) UPDATE t SET c = v.c, version = v.version + 1
//	FROM v WHERE t.id = v.id AND t.version = v.version RETURNING t.id
//
// (SQLite knows an alias everywhere but in RETURNING, hence the full names.)
// Rows run in key order, so that two processes cannot deadlock. R has the
// columns id, version and the listed ones. A write of version 0 inserts its
// row instead, where insert is true.
func fences[W commit.Fence, R any](table string, insert bool, row func(*DBRow, W) R, columns ...string) planFor {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = v." + c
	}
	return planFor{reflect.TypeFor[W](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error) {
		type keyed struct {
			i       int
			key     string
			version int64
		}
		var ups, ins []keyed
		for i, w := range ws {
			key, version := w.(W).Fence()
			if version == 0 && insert {
				ins = append(ins, keyed{i, key, version})
			} else {
				ups = append(ups, keyed{i, key, version})
			}
		}
		collect := func(ks []keyed) []R {
			slices.SortFunc(ks, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
			rows := make([]R, len(ks))
			for j, k := range ks {
				rows[j] = row(&DBRow{l}, ws[k.i].(W))
			}
			return rows
		}
		check := func(ks []keyed, ids []string) {
			if len(ids) == len(ks) {
				return
			}
			slices.Sort(ids)
			for _, k := range ks {
				if _, ok := slices.BinarySearch(ids, k.key); !ok {
					missing = append(missing, k.i)
				}
			}
		}
		if len(ups) > 0 {
			rows := collect(ups)
			var ids []string
			q := l.tx.NewUpdate().With("v", l.tx.NewValues(&rows)).Model((*R)(nil)).ModelTableExpr(table).TableExpr("v").
				Set(strings.Join(set, ", ")).Set("version = v.version + 1").
				Where("? = v.id", bun.Ident(table+".id")).Where("? = v.version", bun.Ident(table+".version")).Returning("?", bun.Ident(table+".id"))
			if _, err := q.Exec(ctx, &ids); err != nil {
				return nil, err
			}
			check(ups, ids)
		}
		if len(ins) > 0 {
			rows := collect(ins)
			var ids []string
			q := l.tx.NewInsert().Model(&rows).ModelTableExpr(table).On("CONFLICT (id) DO NOTHING").Returning("id")
			if _, err := q.Exec(ctx, &ids); err != nil {
				return nil, err
			}
			check(ins, ids)
		}
		return missing, nil
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

// guards checks commit.Guard values with one SELECT per guarded table.
var guards = planFor{reflect.TypeFor[commit.Guard](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error) {
	for _, on := range []struct {
		table         commit.GuardedTable
		name, version string
	}{{commit.UserCredentials, "users", "cv"}, {commit.AttemptBudget, "attempt_budget", "version"}} {
		var keys []string
		for _, w := range ws {
			if g := w.(commit.Guard); g.On == on.table {
				keys = append(keys, g.Key)
			}
		}
		if len(keys) == 0 {
			continue
		}
		var rows []struct {
			ID      string
			Version int64
		}
		err := l.tx.NewSelect().Table(on.name).Column("id").ColumnExpr("? AS version", bun.Ident(on.version)).Where("id IN (?)", bun.List(keys)).Scan(ctx, &rows)
		if err != nil {
			return nil, fmt.Errorf("guard %s: %w", on.name, err)
		}
		seen := make(map[string]int64, len(rows))
		for _, r := range rows {
			seen[r.ID] = r.Version
		}
		for i, w := range ws {
			if g := w.(commit.Guard); g.On == on.table && seen[g.Key] != g.Version {
				missing = append(missing, i)
			}
		}
	}
	return missing, nil
}}}
