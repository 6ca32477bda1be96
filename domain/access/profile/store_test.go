package profile_test

import (
	"testing"

	"castellan/domain/access/profile"
	"castellan/domain/access/profile/profiletest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	profiletest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) profile.Store { return access.NewProfiles(db) }))
}
