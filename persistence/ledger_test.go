package persistence

import (
	"testing"

	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
)

func TestLedgerStore(t *testing.T) {
	suite(t, ledgertest.Run, func(db *DB) ledger.Store { return NewLedger(db) })
}
