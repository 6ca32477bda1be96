package access_test

import (
	"testing"

	"castellan/domain/access/profile"
	"castellan/domain/access/profile/profiletest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestProfileStore(t *testing.T) {
	persistencetest.RunBoth(t, profiletest.Run, func(db *persistence.DB) profile.Store { return access.NewProfiles(db) },
		"email_change")
}
