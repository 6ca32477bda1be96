package user_test

import (
	"testing"

	"castellan/domain/access/user"
	"castellan/domain/access/user/usertest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contracts hold on SQLite; package persistence runs them on both databases.
func TestStore(t *testing.T) {
	usertest.Run(t, persistencetest.Suite(func(db *persistence.DB) user.Store { return access.NewUsers(db) }))
}

func TestDirectory(t *testing.T) {
	usertest.RunDirectory(t, persistencetest.Suite(func(db *persistence.DB) user.Directory {
		return access.NewUsers(db)
	}))
}
