package proof_test

import (
	"testing"

	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, proof.NewDevices(db), proof.NewTOTP(db), proof.NewUserLinks(db))
}
