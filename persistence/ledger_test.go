package persistence

import (
	"testing"

	"castellan/domain/ledger"
	"castellan/domain/ledger/ledgertest"
)

func TestLedgerStore(t *testing.T) {
	suite(t, ledgertest.Run, func(db *DB) ledger.Store { return NewLedger(db) })
}
