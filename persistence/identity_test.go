package persistence

import (
	"testing"

	"castellan/domain/people/identity"
	"castellan/domain/people/identity/identitytest"
)

func TestIdentityStore(t *testing.T) {
	suite(t, identitytest.Run, func(db *DB) identity.Store { return NewIdentities(db) }, "user_identity",
		"additional_info", "users", "user_role")
}
