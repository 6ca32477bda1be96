package persistence

import (
	"testing"

	"castellan/domain/transaction/transactiontest"
)

func TestTransactionStore(t *testing.T) {
	suite(t, transactiontest.Run, func(db *DB) transactiontest.Stores {
		return transactiontest.Stores{Store: NewTransactions(db), Ledger: NewLedger(db)}
	}, "process", "withdrawal_queue", "withdrawal", "deposit")
}
