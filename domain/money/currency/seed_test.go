package currency_test

import (
	"context"
	"errors"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// failing is a store of which one method fails.
type failing struct {
	currency.Store
	method string
}

func (f *failing) AddCurrency(ctx context.Context, c currency.Currency) (int64, error) {
	return f.add("AddCurrency", func() (int64, error) { return f.Store.AddCurrency(ctx, c) })
}

func (f *failing) AddNetwork(ctx context.Context, n currency.Network) (int64, error) {
	return f.add("AddNetwork", func() (int64, error) { return f.Store.AddNetwork(ctx, n) })
}

func (f *failing) AddPair(ctx context.Context, p currency.Pair) (int64, error) {
	return f.add("AddPair", func() (int64, error) { return f.Store.AddPair(ctx, p) })
}

func (f *failing) add(method string, do func() (int64, error)) (int64, error) {
	if f.method == method {
		return 0, errDown
	}
	return do()
}

var errDown = errors.New("the database is down")

// The first currencies are active, with their networks and pairs. A failure ends the seed.
func TestSeed(t *testing.T) {
	db := persistencetest.SQLite(t)
	store := &failing{Store: money.NewCurrencies(db)}
	seed := func() error {
		persistencetest.Empty(t, db, "currency_of_network", "currency_network", "currency")
		return db.InTx(t.Context(), func(ctx context.Context) error { return currency.Seed(ctx, store) })
	}
	storetest.Must(t, seed())
	catalog, err := currency.Load(t.Context(), store)
	storetest.Must(t, err)
	pairs := catalog.Pairs(nil)
	if len(pairs) == 0 {
		t.Fatal("no pairs")
	}
	for _, p := range pairs {
		if !p.Active || !p.Deposit || !p.Withdraw || !p.DepositAddress || !p.Currency.Active || !p.Currency.Deposit ||
			!p.Currency.Withdraw || !p.Network.Active || p.Currency.Name == "" || p.Network.Name == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, method := range []string{"AddCurrency", "AddNetwork", "AddPair"} {
		store.method = method
		if err := seed(); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
