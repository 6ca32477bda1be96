package money_test

import (
	"testing"

	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		money.NewAccounting(db), money.NewAddressBooks(db), money.NewBalances(db), money.NewBlockages(db),
		money.NewCurrencies(db), money.NewLedger(db), money.NewLevels(db), money.NewLimits(db),
		money.NewProviders(db), money.NewRates(db), money.NewTransactions(db))
}
