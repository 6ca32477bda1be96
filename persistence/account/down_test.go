package account_test

import (
	"testing"

	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, account.NewHashKinds(db), account.NewPasswordGuards(db), account.NewUsers(db))
}
