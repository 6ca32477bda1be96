package office

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/office/contract"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Contracts struct{ db *engine.DB }

var _ contract.Store = Contracts{}

func NewContracts(db *engine.DB) Contracts { return Contracts{db} }

// contractLock is the key under which contracts change.
const contractLock = 0x636f6e7472616374 // "contract"

type contractRow struct {
	bun.BaseModel `bun:"table:contract,alias:c"`

	ID          int64 `bun:",pk,autoincrement"`
	Code        string
	Name        string
	NameTR      string `bun:"name_tr"`
	NameAR      string `bun:"name_ar"`
	Version     string `bun:",nullzero"`
	Active      bool
	PublishedAt int64 `bun:",nullzero"`
	record.Created
}

type contractDetailRow struct {
	bun.BaseModel `bun:"table:contract_detail,alias:d"`

	ID         int64 `bun:",pk,autoincrement"`
	ContractID int64
	Title      string
	Content    string
	Policy     string
	OrderNo    int64
	record.Stamps
}

type acceptanceRow struct {
	bun.BaseModel `bun:"table:contract_acceptance,alias:a"`

	UserID     string `bun:",pk"`
	ContractID int64  `bun:",pk"`
	Version    string
	AcceptedAt int64
}

var ContractWrites = []engine.Kind{
	engine.Insert(func(w contract.Accept) acceptanceRow { return acceptances.Row(w) }),
}

var (
	contracts = record.Of(record.Table[contractRow, contract.Contract]{
		Fixed:  []string{"id", "code", "created_at"},
		Absent: "no such contract",
		Reads: func(r contractRow, c *contract.Contract) error {
			if r.Active && r.PublishedAt == 0 { // added as active
				c.PublishedAt = c.CreatedAt
			}
			return nil
		},
	}, record.Names{"NameTR": "Turkish", "NameAR": "Arabic"})
	acceptances = record.Of(record.Table[acceptanceRow, contract.Accept]{
		Order: record.Keyset{Columns: "contract_id"},
	}, record.Names{"AcceptedAt": "At"})
	contractDetails = record.Of(record.Table[contractDetailRow, contract.Detail]{
		Order: record.Keyset{Columns: "order_no, id"},
		Fixed: []string{"created_at"},
	}, nil)
)

func (s Contracts) Lock(ctx context.Context) error { return s.db.LockTx(ctx, contractLock) }

func (s Contracts) Contracts(ctx context.Context, q contract.Query) ([]contract.Contract, error) {
	return contracts.List(ctx, s.db, record.Part{Where: []record.Filter{record.Sent("id", q.ID), record.Sent("code",
		q.Code)}})
}

func (s Contracts) Add(ctx context.Context, c contract.Contract) (int64, error) {
	return contracts.Add(ctx, s.db, c)
}

func (s Contracts) Save(ctx context.Context, c contract.Contract) error {
	return contracts.Save(ctx, s.db, c, record.Is("id", c.ID))
}

func (s Contracts) Details(ctx context.Context, contractID int64) ([]contract.Detail, error) {
	return contractDetails.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("contract_id", contractID)}})
}

func (s Contracts) DetailsOf(ctx context.Context, ids []int64) ([]contract.Detail, error) {
	return contractDetails.List(ctx, s.db, record.Part{Where: []record.Filter{anyOf(ids)}})
}

// anyOf holds for no row where ids is empty.
func anyOf(ids []int64) record.Filter { return record.Where("id IN (?)", bun.List(ids)) }

func (s Contracts) AddDetail(ctx context.Context, d contract.Detail) (int64, error) {
	return contractDetails.Add(ctx, s.db, d)
}

func (s Contracts) SaveDetail(ctx context.Context, d contract.Detail) error {
	return contractDetails.Save(ctx, s.db, d, record.Is("id", d.ID))
}

func (s Contracts) Accepted(ctx context.Context, userID string) ([]contract.Accept, error) {
	return acceptances.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("user_id", userID)}})
}

func (s Contracts) RemoveDetails(ctx context.Context, ids []int64) error {
	return contractDetails.Remove(ctx, s.db, anyOf(ids))
}
