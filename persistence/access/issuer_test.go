package access_test

import (
	"testing"

	"castellan/domain/access/issuer"
	"castellan/domain/access/issuer/issuertest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestUserLinkStore(t *testing.T) {
	persistencetest.RunBoth(t, issuertest.Run,
		func(db *persistence.DB) issuer.Store { return access.NewUserLinks(db) }, "user_link")
}
