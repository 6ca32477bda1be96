package session

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/session/profile"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Profiles struct{ db *engine.DB }

func NewProfiles(db *engine.DB) profile.Store { return Profiles{db} }

type mailChangeRow struct {
	bun.BaseModel `bun:"table:email_change,alias:e"`

	ID        int64 `bun:",pk,autoincrement"`
	UserID    string
	OldEmail  string
	NewEmail  string
	ChangedBy string
	CreatedAt int64
}

var ProfileWrites = []engine.Kind{
	engine.Insert(func(w profile.AddMailChange) mailChangeRow { return mailChanges.Row(w.MailChange) }),
}

var mailChanges = record.Of(record.Table[mailChangeRow, profile.MailChange]{
	Order: record.Keyset{Columns: "created_at, id", Descending: true},
}, record.Names{"OldEmail": "Old", "NewEmail": "New", "CreatedAt": "At"})

func mailChangeFilters(q profile.Query) []record.Filter {
	return []record.Filter{record.Is("user_id", q.UserID), record.Between("created_at", q.From, q.To)}
}

func mailChangeOrder(p profile.Place) []any { return []any{engine.Millis(p.At), p.ID} }

func (s Profiles) MailChanges(ctx context.Context, q profile.Query,
	p page.Query[profile.Place]) (page.Of[profile.MailChange], error) {
	return record.ListPage(ctx, s.db, mailChanges, p, mailChangeOrder, mailChangeFilters(q))
}
