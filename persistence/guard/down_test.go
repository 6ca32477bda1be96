package guard_test

import (
	"testing"

	"castellan/persistence/guard"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		guard.NewFirewall(db))
}
