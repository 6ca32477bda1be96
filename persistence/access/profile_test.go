package access_test

import (
	"testing"

	"castellan/domain/profile"
	"castellan/domain/profile/profiletest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestProfileStore(t *testing.T) {
	persistencetest.RunBoth(t, profiletest.Run, func(db *persistence.DB) profile.Store { return access.NewProfiles(db) },
		"email_change")
}
