package persistence

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/audit"
	"castellan/domain/audit/audittest"
)

func TestAuditStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) { audittest.TestStore(t, NewAudit(db), db) })
}

// What an administrator asks for is found by an index, whatever the audit has
// grown to.
func TestAuditListsByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		for name, c := range map[string]struct {
			q     audit.Query
			index string
		}{
			"everybody": {audit.Query{Limit: 10}, "audit_at"},
			"later":     {audit.Query{Limit: 10, After: audit.Place{At: time.UnixMilli(5), Chain: "c", Seq: 1}}, "audit_at"},
			"account":   {audit.Query{Limit: 10, UserID: "u1"}, "audit_user"},
		} {
			query := selected(db.read.NewSelect().Model((*auditRow)(nil)), c.q).OrderExpr("at DESC, chain DESC, seq DESC").Limit(10)
			if c.q.After.Chain != "" {
				query = query.Where("(at, chain, seq) < (?, ?, ?)", ms(c.q.After.At), c.q.After.Chain, c.q.After.Seq)
			}
			explain := "EXPLAIN QUERY PLAN "
			if db.postgres() {
				explain = "SET enable_seqscan = off; SET enable_sort = off; EXPLAIN " // with a few rows it would rather read them all
			}
			conn, err := db.read.Conn(ctx)
			must(t, err)
			defer conn.Close()
			var plan []string
			for _, text := range strings.SplitAfter(explain+query.String(), "; ") {
				rows, err := conn.QueryContext(ctx, text)
				must(t, err)
				columns, err := rows.Columns()
				must(t, err)
				for rows.Next() {
					cells := make([]any, len(columns))
					for i := range cells {
						cells[i] = new(any)
					}
					must(t, rows.Scan(cells...))
					if line, ok := (*cells[len(cells)-1].(*any)).(string); ok {
						plan = append(plan, line)
					}
				}
				must(t, rows.Close())
			}
			if all := strings.Join(plan, "\n"); !strings.Contains(all, c.index) || strings.Contains(all, "TEMP B-TREE") || strings.Contains(all, "Sort") {
				t.Errorf("%s: the plan does not use %s alone:\n%s", name, c.index, all)
			}
		}
	})
}
