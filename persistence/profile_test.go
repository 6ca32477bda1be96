package persistence

import (
	"testing"

	"castellan/domain/profile"
	"castellan/domain/profile/profiletest"
)

func TestProfileStore(t *testing.T) {
	suite(t, profiletest.Run, func(db *DB) profile.Store { return NewProfiles(db) }, "email_change")
}
