package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/people/agreement"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Agreements struct{ db *engine.DB }

var _ agreement.Store = Agreements{}

func NewAgreements(db *engine.DB) Agreements { return Agreements{db} }

// agreementLock is the key under which agreements change.
const agreementLock = 0x61677265656d656e // "agreemen"

type agreementRow struct {
	bun.BaseModel `bun:"table:agreement,alias:a"`

	ID             int64 `bun:",pk,autoincrement"`
	Name           string
	Description    string
	Version        string
	AcceptRequired bool
	FilePath       string
	CreatedBy      string
	record.Created
	AcceptedAt int64 `bun:",scanonly"`
}

var agreements = record.Of(record.Table[agreementRow, agreement.Agreement]{Absent: "no such agreement"}, nil)

func (s Agreements) Lock(ctx context.Context) error { return s.db.LockTx(ctx, agreementLock) }

func (s Agreements) List(ctx context.Context, q agreement.Query) ([]agreement.Agreement, error) {
	seen := agreements
	seen.Join = func(rows *bun.SelectQuery) *bun.SelectQuery {
		return rows.ColumnExpr("a.*").ColumnExpr("COALESCE(t.accepted_at, 0) AS accepted_at").
			Join("LEFT JOIN agreement_acceptance AS t ON t.agreement_id = a.id AND t.user_id = ?", q.UserID)
	}
	return seen.List(ctx, s.db, record.Part{Where: []record.Filter{record.Sent("version", q.Version)}})
}

func (s Agreements) Get(ctx context.Context, id int64) (agreement.Agreement, error) {
	return agreements.Find(ctx, s.db, record.Is("id", id))
}

func (s Agreements) Last(ctx context.Context, name string) (agreement.Agreement, error) {
	return agreements.Find(ctx, s.db, record.Where("id = (SELECT max(id) FROM agreement WHERE name = ?)", name))
}

func (s Agreements) Add(ctx context.Context, a agreement.Agreement) (int64, error) {
	return agreements.Add(ctx, s.db, a)
}

func (s Agreements) Accept(ctx context.Context, id int64, userID string) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		if _, err := agreements.Find(ctx, s.db, record.Is("id", id)); err != nil {
			return err
		}
		_, err := tx.NewInsert().Table("agreement_acceptance").On("CONFLICT DO NOTHING").
			Model(&map[string]any{"agreement_id": id, "user_id": userID, "accepted_at": engine.Millis(s.db.Now())}).Exec(ctx)
		return err
	})
}

func (s Agreements) ReferencedKeys(ctx context.Context, keys []string) (named []string, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("agreement").Column("file_path").
		Where("file_path IN (?)", bun.List(keys)), &named)
	return named, err
}
