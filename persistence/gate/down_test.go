package gate_test

import (
	"testing"

	"castellan/persistence/gate"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, gate.NewErrands(db), gate.NewGateways(db))
}
