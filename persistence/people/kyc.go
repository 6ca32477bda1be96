package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/people/kyc"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Decisions struct{ db *engine.DB }

var _ kyc.Store = Decisions{}

func NewDecisions(db *engine.DB) Decisions { return Decisions{db} }

type decisionRow struct {
	bun.BaseModel `bun:"table:account_decision,alias:d"`

	ID         int64 `bun:",pk,autoincrement"`
	UserID     string
	Kind       string
	Value      string
	DocumentID string
	Reason     string
	Reasons    record.JSON[map[string]any]
	DecidedBy  string
	CreatedAt  int64
}

var decisions = record.Of(record.Table[decisionRow, kyc.Decision]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Absent: "there is no such decision",
}, record.Names{"CreatedAt": "At"})

func (s Decisions) Add(ctx context.Context, d kyc.Decision) error {
	_, err := decisions.Add(ctx, s.db, d)
	return err
}

func (s Decisions) Last(ctx context.Context, userID string, k kyc.Kind) (kyc.Decision, error) {
	return decisions.Find(ctx, s.db, record.Is("user_id", userID), record.Is("kind", string(k)))
}
