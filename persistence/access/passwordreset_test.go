package access_test

import (
	"testing"

	"castellan/domain/password/replace"
	"castellan/domain/password/replace/replacetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestResetTokenStore(t *testing.T) {
	persistencetest.RunBoth(t, replacetest.Run,
		func(db *persistence.DB) replace.Store { return access.NewResetTokens(db) }, "reset_token")
}
