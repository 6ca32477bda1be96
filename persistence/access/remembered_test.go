package access_test

import (
	"testing"

	"castellan/domain/access/remembered"
	"castellan/domain/access/remembered/rememberedtest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestRememberedStore(t *testing.T) {
	persistencetest.RunBoth(t, rememberedtest.Run,
		func(db *persistence.DB) remembered.Store { return access.NewRemembered(db) }, "users", "remembered")
}
