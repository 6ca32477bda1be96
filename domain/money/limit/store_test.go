package limit_test

import (
	"testing"

	"castellan/domain/money/limit/limittest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	limittest.Run(t, persistencetest.Suite(func(db *persistence.DB) limittest.Stores {
		return limittest.Stores{Store: money.NewLimits(db), Ledger: money.NewLedger(db)}
	}))
}
