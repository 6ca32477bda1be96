package money_test

import (
	"context"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestCurrencyStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) currency.Store { return money.NewCurrencies(db) },
		storetest.Cases[currency.Store]{"Changes": currencyChanges},
		"currency_of_network", "currency_network", "currency")
}

type currencyContent struct {
	currencies []currency.Currency
	networks   []currency.Network
	pairs      []currency.Pair
}

func readCurrencies(t *testing.T, ctx context.Context, s currency.Store) (c currencyContent) {
	t.Helper()
	var err error
	c.currencies, err = s.Currencies(ctx, currency.Query{})
	storetest.Must(t, err)
	c.networks, err = s.Networks(ctx, currency.Query{})
	storetest.Must(t, err)
	c.pairs, err = s.Pairs(ctx)
	storetest.Must(t, err)
	return c
}

// A change keeps the ids, including those of a pair's currency and network. A pair has a network that exists.
func currencyChanges(t *testing.T, s currency.Store, tx commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, tx.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, s) }))
	before := readCurrencies(t, ctx, s)
	c := persistencetest.Whole(t, func(c *currency.Currency) {
		old := before.currencies[1]
		c.QuantityFormat, c.Threshold = amount.Must("0.000000000000000001"), amount.Must("999999999999999999.5")
		c.ID, c.Deposit, c.Withdraw, c.Active = old.ID, !old.Deposit, !old.Withdraw, !old.Active
	})
	n := persistencetest.Whole(t, func(n *currency.Network) { n.ID, n.Active = before.networks[1].ID, false })
	p := persistencetest.Whole(t, func(p *currency.Pair) {
		old := before.pairs[1]
		p.ID, p.CurrencyID, p.NetworkID = old.ID, old.CurrencyID, old.NetworkID
		p.DepositAddress, p.Deposit, p.Withdraw, p.Active = !old.DepositAddress, !old.Deposit, !old.Withdraw, !old.Active
	})
	storetest.Must(t, s.ChangeCurrency(ctx, c.ID, func(currency.Currency) (currency.Currency, error) { return c, nil }))
	storetest.Must(t, s.ChangeNetwork(ctx, n.ID, func(currency.Network) (currency.Network, error) { return n, nil }))
	storetest.Must(t, s.ChangePair(ctx, p.ID, func(have currency.Pair) (currency.Pair, error) {
		storetest.Same(t, have, before.pairs[1])
		next := p
		next.ID, next.CurrencyID, next.NetworkID = 99, 98, 97
		return next, nil
	}))
	want := before
	want.currencies[1], want.networks[1], want.pairs[1] = c, n, p
	storetest.Same(t, readCurrencies(t, ctx, s), want)
	if _, err := s.AddPair(ctx, currency.Pair{CurrencyID: c.ID, NetworkID: n.ID + 1000}); err == nil {
		t.Error("a pair of an unknown network was added")
	}
}
