package persistence

import (
	"testing"

	"castellan/domain/access/profile"
	"castellan/domain/access/profile/profiletest"
)

func TestProfileStore(t *testing.T) {
	suite(t, profiletest.Run, func(db *DB) profile.Store { return NewProfiles(db) }, "email_change")
}
