package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/currency"
)

// Currencies implements currency.Store.
type Currencies struct{ db *DB }

var _ currency.Store = Currencies{}

// NewCurrencies returns the reference data kept in db.
func NewCurrencies(db *DB) Currencies { return Currencies{db} }

type currencyRow struct {
	bun.BaseModel `bun:"table:currency,alias:c"`

	ID        int64 `bun:",pk,autoincrement"`
	Code      string
	Name      string
	Active    bool
	CreatedAt int64
}

type networkRow struct {
	bun.BaseModel `bun:"table:currency_network,alias:n"`

	ID        int64 `bun:",pk,autoincrement"`
	Code      string
	Name      string
	Active    bool
	CreatedAt int64
}

type pairRow struct {
	bun.BaseModel `bun:"table:currency_of_network,alias:p"`

	ID             int64 `bun:",pk,autoincrement"`
	CurrencyID     int64
	NetworkID      int64
	Active         bool
	WithdrawEnable bool
	CreatedAt      int64
}

// Currencies implements currency.Store.
func (s Currencies) Currencies(ctx context.Context) ([]currency.Currency, error) {
	return currencyRows(ctx, s.db, func(r currencyRow) currency.Currency {
		return currency.Currency{ID: r.ID, Code: r.Code, Name: r.Name, Active: r.Active}
	})
}

// Networks implements currency.Store.
func (s Currencies) Networks(ctx context.Context) ([]currency.Network, error) {
	return currencyRows(ctx, s.db, func(r networkRow) currency.Network {
		return currency.Network{ID: r.ID, Code: r.Code, Name: r.Name, Active: r.Active}
	})
}

// Pairs implements currency.Store.
func (s Currencies) Pairs(ctx context.Context) ([]currency.Pair, error) {
	return currencyRows(ctx, s.db, func(r pairRow) currency.Pair {
		return currency.Pair{ID: r.ID, CurrencyID: r.CurrencyID, NetworkID: r.NetworkID, Active: r.Active, Withdraw: r.WithdrawEnable}
	})
}

// AddCurrency implements currency.Store.
func (s Currencies) AddCurrency(ctx context.Context, c currency.Currency) (int64, error) {
	return insertWithID(ctx, s.db, &currencyRow{Code: c.Code, Name: c.Name, Active: c.Active, CreatedAt: ms(s.db.Now())})
}

// AddNetwork implements currency.Store.
func (s Currencies) AddNetwork(ctx context.Context, n currency.Network) (int64, error) {
	return insertWithID(ctx, s.db, &networkRow{Code: n.Code, Name: n.Name, Active: n.Active, CreatedAt: ms(s.db.Now())})
}

// AddPair implements currency.Store.
func (s Currencies) AddPair(ctx context.Context, p currency.Pair) (int64, error) {
	return insertWithID(ctx, s.db, &pairRow{CurrencyID: p.CurrencyID, NetworkID: p.NetworkID, Active: p.Active, WithdrawEnable: p.Withdraw, CreatedAt: ms(s.db.Now())})
}

// currencyRows reads all rows of a table in the order of their ids.
func currencyRows[R, T any](ctx context.Context, db *DB, record func(R) T) ([]T, error) {
	rows, err := rowsByID[R](ctx, db)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = record(r)
	}
	return out, nil
}

// insertWithID inserts a row whose id the database gives.
func insertWithID[R any](ctx context.Context, db *DB, row *R) (id int64, err error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	err = db.InTx(ctx, func(ctx context.Context) error {
		return db.Conn(ctx).NewInsert().Model(row).Returning("id").Scan(ctx, &id)
	})
	return id, translate(err)
}
