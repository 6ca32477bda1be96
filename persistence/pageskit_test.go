package persistence

import (
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/audit"
	"castellan/domain/job"
	"castellan/domain/page"
	"castellan/persistence/record"
)

// A page of a list that grows without end is found by an index that has the order
// of the list, with a position and without: the last page costs what the first
// one does.
func TestPagesOfKitAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		at := time.UnixMilli(5)
		audits := func(q audit.Query, after *audit.Place) *bun.SelectQuery {
			p := record.PartOf(page.Query[audit.Place]{After: after, Limit: 10}, auditOrder, auditFilters(q))
			return auditRows.Selected(db.Conn(t.Context()).NewSelect().Model((*auditRow)(nil)), p)
		}
		work := func(q job.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[job.Place]{After: &job.Place{ID: "9"}, Limit: 10}, jobOrder, jobFilters(q))
			return jobs.Selected(db.Conn(t.Context()).NewSelect().Model((*jobRow)(nil)), p)
		}
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"audit":                 {audits(audit.Query{}, nil), "audit_at"},
			"audit, later":          {audits(audit.Query{}, &audit.Place{At: at, Chain: "c", Seq: 1}), "audit_at"},
			"audit of one":          {audits(audit.Query{UserID: "u1"}, nil), "audit_user"},
			"audit from an address": {audits(audit.Query{IP: "::1"}, &audit.Place{At: at, Chain: "c", Seq: 1}), "audit_ip"},
			"audit of a record":     {audits(audit.Query{Target: "t"}, nil), "audit_target"},
			"jobs of a type":        {work(job.Query{Kind: "k"}), "job_kind"},
			"jobs in a state":       {work(job.Query{State: job.Done}), "job_state"},
			"jobs of both":          {work(job.Query{Kind: "k", State: job.Done}), "job_kind_state"},
		} {
			wantsIndex(t, db, name, c.query, c.index)
		}
		// What one request did is so little that it is sorted.
		plan := explainText(t, db, audits(audit.Query{RequestID: "r"}, nil).String(), "SET enable_sort = on")
		if !strings.Contains(plan, "audit_request") {
			t.Errorf("audit of a request is planned as\n%s", plan)
		}
	})
}
