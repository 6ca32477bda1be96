package passkey_test

import (
	"testing"

	"castellan/domain/access/passkey/passkeytest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	passkeytest.Run(t, persistencetest.Suite(func(db *persistence.DB) passkeytest.Stores {
		return passkeytest.Stores{Store: access.NewPasskeys(db), Users: access.NewUsers(db)}
	}))
}
