package persistence_test

import (
	"testing"

	"castellan/domain/money/ledger"
	"castellan/persistence/kit"
)

// The kit comes before money and repeats the name of an action: a row of another name would leave the archive
// without what the proof of the ledger reads.
func TestTheArchiveKeepsTransfers(t *testing.T) {
	if kit.KeptAction != ledger.ActionTransfer {
		t.Errorf("the archive keeps %s, the ledger writes %s", kit.KeptAction, ledger.ActionTransfer)
	}
}
