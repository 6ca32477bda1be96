package proof

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/proof/issuer"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// UserLinks keeps the subjects of other login services that are accounts here.
type UserLinks struct{ db *engine.DB }

func NewUserLinks(db *engine.DB) issuer.Store { return UserLinks{db} }

type userLinkRow struct {
	bun.BaseModel `bun:"table:user_link,alias:l"`

	ID                      int64 `bun:",pk,autoincrement"`
	Issuer, Subject, UserID string
	CreatedAt               int64
}

var userLinks = record.Of(record.Table[userLinkRow, issuer.Link]{
	Order:  record.Keyset{Columns: "issuer, subject"},
	Absent: "the subject is not linked to the account",
}, nil)

func (s UserLinks) Add(ctx context.Context, l issuer.Link) error {
	_, err := userLinks.Add(ctx, s.db, l)
	return err
}

func (s UserLinks) Remove(ctx context.Context, l issuer.Link) error {
	return userLinks.Remove(ctx, s.db, record.Is("issuer", l.Issuer), record.Is("subject", l.Subject),
		record.Is("user_id", l.UserID))
}

func (s UserLinks) Links(ctx context.Context, userID string) ([]issuer.Link, error) {
	return userLinks.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("user_id", userID)}})
}

// User returns the account of a subject.
func (s UserLinks) User(ctx context.Context, from, subject string) (string, error) {
	l, err := userLinks.Find(ctx, s.db, record.Is("issuer", from), record.Is("subject", subject))
	return l.UserID, err
}
