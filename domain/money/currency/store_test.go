package currency_test

import (
	"testing"

	"castellan/domain/money/currency"
	"castellan/domain/money/currency/currencytest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	currencytest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) currency.Store { return money.NewCurrencies(db) },
		"currency_of_network", "currency_network", "currency"))
}
