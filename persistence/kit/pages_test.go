package kit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfKitAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(5)
		audits := func(q audit.Query, after *audit.Place) *bun.SelectQuery {
			p := record.PartOf(page.Query[audit.Place]{After: after, Limit: 10}, kit.AuditOrder, kit.AuditFilters(q))
			return kit.AuditRows.Selected(db.Conn(t.Context()).NewSelect().Model((*kit.AuditRow)(nil)), p)
		}
		work := func(q job.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[job.Place]{After: &job.Place{ID: "9"}, Limit: 10}, kit.JobOrder, kit.JobFilters(q))
			return kit.JobsTable.Selected(db.Conn(t.Context()).NewSelect().Model((*kit.JobRow)(nil)), p)
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
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
		// The rows of one request are few, so they are sorted.
		plan := persistencetest.ExplainText(t, db, audits(audit.Query{RequestID: "r"}, nil).String(), "SET enable_sort = on")
		if !strings.Contains(plan, "audit_request") {
			t.Errorf("audit of a request is planned as\n%s", plan)
		}
	})
}

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, []string{"Audit.MayRemove"}, // of PostgreSQL
		kit.NewAudit(db), kit.NewChanges(db), kit.NewIdempotency(db), kit.NewIntegration(db), kit.NewJobs(db),
		kit.NewKeys(db), kit.NewParameters(db))
}
