package transaction_test

import (
	"testing"

	"castellan/domain/money/transaction/transactiontest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	transactiontest.Run(t, persistencetest.Suite(func(db *persistence.DB) transactiontest.Stores {
		return transactiontest.Stores{Store: money.NewTransactions(db), Ledger: money.NewLedger(db)}
	}))
}
