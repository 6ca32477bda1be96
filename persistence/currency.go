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

	ID     int64 `bun:",pk,autoincrement"`
	Code   string
	Name   string
	Active bool
	created
}

type networkRow struct {
	bun.BaseModel `bun:"table:currency_network,alias:n"`

	ID     int64 `bun:",pk,autoincrement"`
	Code   string
	Name   string
	Active bool
	created
}

type pairRow struct {
	bun.BaseModel `bun:"table:currency_of_network,alias:p"`

	ID             int64 `bun:",pk,autoincrement"`
	CurrencyID     int64
	NetworkID      int64
	Active         bool
	WithdrawEnable bool
	created
}

var (
	currencies = table[currencyRow, currency.Currency]{
		record: func(r currencyRow) (currency.Currency, error) {
			return currency.Currency{ID: r.ID, Code: r.Code, Name: r.Name, Active: r.Active}, nil
		},
		row: func(c currency.Currency) currencyRow {
			return currencyRow{Code: c.Code, Name: c.Name, Active: c.Active}
		},
	}
	networks = table[networkRow, currency.Network]{
		record: func(r networkRow) (currency.Network, error) {
			return currency.Network{ID: r.ID, Code: r.Code, Name: r.Name, Active: r.Active}, nil
		},
		row: func(n currency.Network) networkRow {
			return networkRow{Code: n.Code, Name: n.Name, Active: n.Active}
		},
	}
	pairs = table[pairRow, currency.Pair]{
		record: func(r pairRow) (currency.Pair, error) {
			return currency.Pair{ID: r.ID, CurrencyID: r.CurrencyID, NetworkID: r.NetworkID, Active: r.Active,
				Withdraw: r.WithdrawEnable}, nil
		},
		row: func(p currency.Pair) pairRow {
			return pairRow{CurrencyID: p.CurrencyID, NetworkID: p.NetworkID, Active: p.Active,
				WithdrawEnable: p.Withdraw}
		},
	}
)

// Currencies implements currency.Store.
func (s Currencies) Currencies(ctx context.Context) ([]currency.Currency, error) {
	return currencies.list(ctx, s.db, part{})
}

// Networks implements currency.Store.
func (s Currencies) Networks(ctx context.Context) ([]currency.Network, error) {
	return networks.list(ctx, s.db, part{})
}

// Pairs implements currency.Store.
func (s Currencies) Pairs(ctx context.Context) ([]currency.Pair, error) {
	return pairs.list(ctx, s.db, part{})
}

// AddCurrency implements currency.Store.
func (s Currencies) AddCurrency(ctx context.Context, c currency.Currency) (int64, error) {
	return currencies.add(ctx, s.db, c)
}

// AddNetwork implements currency.Store.
func (s Currencies) AddNetwork(ctx context.Context, n currency.Network) (int64, error) {
	return networks.add(ctx, s.db, n)
}

// AddPair implements currency.Store.
func (s Currencies) AddPair(ctx context.Context, p currency.Pair) (int64, error) {
	return pairs.add(ctx, s.db, p)
}
