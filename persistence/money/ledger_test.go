package money_test

import (
	"testing"

	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestLedgerStore(t *testing.T) {
	persistencetest.RunBoth(t, ledgertest.Run, func(db *persistence.DB) ledger.Store { return money.NewLedger(db) })
}
