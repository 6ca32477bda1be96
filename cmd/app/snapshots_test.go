package app

import (
	"context"
	"slices"
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence/money"
)

// The currencies in memory are loaded before the node serves, follow the change feed, and are reloaded after a
// gap of the feed.
func TestCurrenciesAreReloaded(t *testing.T) {
	s := assembled(t)
	known := func(code string) bool {
		return slices.ContainsFunc(s.currencies.Catalog().Pairs(nil), func(l currency.Listed) bool {
			return l.Currency.Code == code
		})
	}
	if !known("BTC") {
		t.Error("BTC is not known at the start")
	}
	other, err := Open(t.Context(), s.cfg)
	storetest.Must(t, err)
	defer other.Close()
	add := func(code string, notes ...commit.Write) {
		t.Helper()
		storetest.Must(t, other.DB.InTx(t.Context(), func(ctx context.Context) error {
			store := money.NewCurrencies(other.DB)
			id, err := store.AddCurrency(ctx, currency.Currency{Code: code, Name: code})
			if err == nil {
				_, err = store.AddPair(ctx, currency.Pair{CurrencyID: id, NetworkID: 1})
			}
			if err == nil && len(notes) > 0 {
				err = other.DB.Commit(ctx, notes...)
			}
			return err
		}))
	}
	add("NEW1", change.Note{Topic: change.Currencies}, audit.Record{Action: "TEST"})
	if storetest.Must(t, s.feed.Poll(t.Context())); !known("NEW1") {
		t.Error("a currency of another node is not known after its note was read")
	}
	add("NEW2")
	if known("NEW2") {
		t.Error("a currency is known without a note and without a gap")
	}
	if storetest.Must(t, s.load(t.Context())); !known("NEW2") {
		t.Error("a currency of another node is not known after a gap")
	}
}
