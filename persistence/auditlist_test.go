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
		for name, c := range map[string]struct {
			q     audit.Query
			index string
		}{
			"everybody": {audit.Query{Limit: 10}, "audit_at"},
			"later":     {audit.Query{Limit: 10, After: audit.Place{At: time.UnixMilli(5), Chain: "c", Seq: 1}}, "audit_at"},
			"account":   {audit.Query{Limit: 10, UserID: "u1"}, "audit_user"},
		} {
			query := selected(db.Conn(t.Context()).NewSelect().Model((*auditRow)(nil)), c.q).
				OrderExpr("at DESC, chain DESC, seq DESC").Limit(10)
			if c.q.After.Chain != "" {
				query = query.Where("(at, chain, seq) < (?, ?, ?)", ms(c.q.After.At), c.q.After.Chain, c.q.After.Seq)
			}
			plan := explain(t, db, query)
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
				t.Errorf("%s: the plan does not use %s alone:\n%s", name, c.index, plan)
			}
		}
	})
}
