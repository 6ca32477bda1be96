package password_test

import (
	"testing"

	"castellan/domain/access/password"
	"castellan/domain/access/password/passwordtest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	passwordtest.Run(t, persistencetest.Suite(func(db *persistence.DB) password.GuardStore {
		return access.NewPasswordGuards(db)
	}))
}
