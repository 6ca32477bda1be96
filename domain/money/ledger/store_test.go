package ledger_test

import (
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
)

// The contract holds in memory; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) (ledger.Store, commit.Committer) {
		m := ledgertest.NewMemory()
		return m, m
	})
}
