package access_test

import (
	"testing"

	"castellan/domain/access/servicekey"
	"castellan/domain/access/servicekey/servicekeytest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestServiceKeyStore(t *testing.T) {
	persistencetest.RunBoth(t, servicekeytest.Run,
		func(db *persistence.DB) servicekey.Store { return access.NewServiceKeys(db) }, "service_key")
}
