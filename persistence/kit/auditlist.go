package kit

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Audit struct{ db *engine.DB }

var _ audit.Store = Audit{}

func NewAudit(db *engine.DB) Audit { return Audit{db} }

// auditRows reads the audit; its rows are written by AuditWrites.
var auditRows = record.Of(record.Table[auditRow, audit.Stored]{
	Order: record.Keyset{Columns: "at, chain, seq", Descending: true},
}, nil)

func auditFilters(q audit.Query) []record.Filter {
	fs := []record.Filter{record.Given("actor_id", q.ActorID), record.Given("action", q.Action),
		record.Between("at", q.From, q.To)}
	for _, sought := range [...]struct{ column, value string }{{"user_id", q.UserID}, {"request_id", q.RequestID},
		{"ip", q.IP}, {"target", q.Target}} {
		if sought.value != "" {
			// The second says that the index of the column, which has no blank, serves.
			fs = append(fs, record.Is(sought.column, sought.value), record.Where("? <> ''", bun.Ident(sought.column)))
		}
	}
	return fs
}

func auditOrder(p audit.Place) []any { return []any{engine.Millis(p.At), p.Chain, p.Seq} }

func (s Audit) List(ctx context.Context, q audit.Query, p page.Query[audit.Place]) (page.Of[audit.Stored], error) {
	return record.ListPage(ctx, s.db, auditRows, p, auditOrder, auditFilters(q))
}
