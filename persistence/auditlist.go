package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/audit"
)

// Audit implements audit.Store.
type Audit struct{ db *DB }

var _ audit.Store = Audit{}

// NewAudit returns the audit kept in db.
func NewAudit(db *DB) Audit { return Audit{db} }

func selected(s *bun.SelectQuery, q audit.Query) *bun.SelectQuery {
	for _, c := range []struct{ column, value string }{{"user_id", q.UserID}, {"actor_id", q.ActorID}, {"action", q.Action}} {
		if c.value != "" {
			s = s.Where("? = ?", bun.Ident(c.column), c.value)
		}
	}
	if q.UserID != "" { // so that the index of accounts serves
		s = s.Where("user_id <> ''")
	}
	if !q.From.IsZero() {
		s = s.Where("at >= ?", ms(q.From))
	}
	if !q.To.IsZero() {
		s = s.Where("at <= ?", ms(q.To))
	}
	return s
}

// List implements audit.Store.
func (s Audit) List(ctx context.Context, q audit.Query) ([]audit.Stored, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []auditRow
	query := selected(s.db.Conn(ctx).NewSelect().Model(&rows), q).OrderExpr("at DESC, chain DESC, seq DESC").Limit(int64(q.Limit))
	if q.After.Chain != "" {
		query = query.Where("(at, chain, seq) < (?, ?, ?)", ms(q.After.At), q.After.Chain, q.After.Seq)
	}
	err := query.Scan(ctx)
	out := make([]audit.Stored, len(rows))
	for i, r := range rows {
		out[i] = audit.Stored{Chain: r.Chain, Seq: r.Seq, Hash: r.Hash, Record: audit.Record{At: at(r.At), ActorID: r.ActorID, UserID: r.UserID, Action: r.Action,
			Target: r.Target, Outcome: audit.Outcome(r.Outcome), IP: r.IP, RequestID: r.RequestID, Detail: r.Detail}}
	}
	return out, translate(err)
}

// Count implements audit.Store.
func (s Audit) Count(ctx context.Context, q audit.Query) (int, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	n, err := selected(s.db.Conn(ctx).NewSelect().Model((*auditRow)(nil)), q).Count(ctx)
	return int(n), translate(err)
}
