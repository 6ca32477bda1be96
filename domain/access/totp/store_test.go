package totp_test

import (
	"testing"

	"castellan/domain/access/totp/totptest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	totptest.Run(t, persistencetest.Suite(func(db *persistence.DB) totptest.Stores {
		return totptest.Stores{Store: access.NewTOTP(db), Users: access.NewUsers(db)}
	}))
}
