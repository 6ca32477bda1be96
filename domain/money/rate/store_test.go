package rate_test

import (
	"testing"

	"castellan/domain/money/rate"
	"castellan/domain/money/rate/ratetest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	ratetest.Run(t, persistencetest.Suite(func(db *persistence.DB) rate.Store { return money.NewRates(db) }))
}
