package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/office/contract"
	"castellan/persistence/engine"
)

type Contracts struct{ db *DB }

var _ contract.Store = Contracts{}

// NewContracts returns the contracts kept in db.
func NewContracts(db *DB) Contracts { return Contracts{db} }

// contractLock is the key under which contracts change.
const contractLock = 0x636f6e7472616374 // "contract"

type contractRow struct {
	bun.BaseModel `bun:"table:contract,alias:c"`

	ID      int64 `bun:",pk,autoincrement"`
	Code    string
	Name    string
	Version string `bun:",nullzero"`
	Active  bool
	created
}

type contractDetailRow struct {
	bun.BaseModel `bun:"table:contract_detail,alias:d"`

	ID         int64 `bun:",pk,autoincrement"`
	ContractID int64
	Title      string
	Content    string
	Policy     string
	OrderNo    int64
	stamps
}

type acceptanceRow struct {
	bun.BaseModel `bun:"table:contract_acceptance,alias:a"`

	UserID     string `bun:",pk"`
	ContractID int64  `bun:",pk"`
	Version    string
	AcceptedAt int64
}

var contractWrites = []engine.Kind{
	engine.Insert(func(w contract.Accept) acceptanceRow {
		return acceptanceRow{UserID: w.UserID, ContractID: w.ContractID, Version: w.Version, AcceptedAt: ms(w.At)}
	}),
}

var (
	contracts = table[contractRow, contract.Contract]{
		record: func(r contractRow) (contract.Contract, error) {
			return contract.Contract{ID: r.ID, Code: r.Code, Name: r.Name, Version: r.Version, Active: r.Active,
				CreatedAt: at(r.CreatedAt)}, nil
		},
		row: func(c contract.Contract) contractRow {
			return contractRow{Code: c.Code, Name: c.Name, Version: c.Version, Active: c.Active}
		},
	}
	acceptances = table[acceptanceRow, contract.Accept]{
		order: keyset{columns: "contract_id"},
		record: func(r acceptanceRow) (contract.Accept, error) {
			return contract.Accept{UserID: r.UserID, ContractID: r.ContractID, Version: r.Version, At: at(r.AcceptedAt)}, nil
		},
	}
	contractDetails = table[contractDetailRow, contract.Detail]{
		order: keyset{columns: "order_no, id"},
		fixed: []string{"created_at"},
		record: func(r contractDetailRow) (contract.Detail, error) {
			return contract.Detail{ID: r.ID, ContractID: r.ContractID, Title: r.Title, Content: r.Content,
				Policy: r.Policy, OrderNo: r.OrderNo}, nil
		},
		row: func(d contract.Detail) contractDetailRow {
			return contractDetailRow{ContractID: d.ContractID, Title: d.Title, Content: d.Content, Policy: d.Policy,
				OrderNo: d.OrderNo}
		},
	}
)

func (s Contracts) Lock(ctx context.Context) error { return s.db.LockTx(ctx, contractLock) }

func (s Contracts) Contracts(ctx context.Context, q contract.Query) ([]contract.Contract, error) {
	return contracts.list(ctx, s.db, part{where: []filter{sent("id", q.ID), sent("code", q.Code)}})
}

func (s Contracts) Add(ctx context.Context, c contract.Contract) (int64, error) {
	return contracts.add(ctx, s.db, c)
}

func (s Contracts) Details(ctx context.Context, contractID int64) ([]contract.Detail, error) {
	return contractDetails.list(ctx, s.db, part{where: []filter{is("contract_id", contractID)}})
}

func (s Contracts) DetailsOf(ctx context.Context, ids []int64) ([]contract.Detail, error) {
	return contractDetails.list(ctx, s.db, part{where: []filter{anyOf(ids)}})
}

// anyOf holds for no row where ids is empty.
func anyOf(ids []int64) filter { return where("id IN (?)", bun.List(ids)) }

func (s Contracts) AddDetail(ctx context.Context, d contract.Detail) (int64, error) {
	return contractDetails.add(ctx, s.db, d)
}

func (s Contracts) SaveDetail(ctx context.Context, d contract.Detail) error {
	return contractDetails.save(ctx, s.db, d, is("id", d.ID))
}

// Accepted lists what a user accepted.
func (s Contracts) Accepted(ctx context.Context, userID string) ([]contract.Accept, error) {
	return acceptances.list(ctx, s.db, part{where: []filter{is("user_id", userID)}})
}

func (s Contracts) RemoveDetails(ctx context.Context, ids []int64) error {
	return contractDetails.remove(ctx, s.db, anyOf(ids))
}
