package people_test

import (
	"testing"

	"castellan/domain/people/identity"
	"castellan/domain/people/identity/identitytest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestIdentityStore(t *testing.T) {
	persistencetest.RunBoth(t, identitytest.Run,
		func(db *persistence.DB) identity.Store { return people.NewIdentities(db) }, "user_identity",
		"additional_info", "users", "user_role")
}
