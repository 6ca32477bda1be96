package access_test

import (
	"testing"

	"castellan/domain/access/password/replace"
	"castellan/domain/access/password/replace/replacetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestResetTokenStore(t *testing.T) {
	persistencetest.RunBoth(t, replacetest.Run,
		func(db *persistence.DB) replace.Store { return access.NewResetTokens(db) }, "reset_token")
}
