package access_test

import (
	"testing"

	"castellan/domain/access/cronkey"
	"castellan/domain/access/cronkey/cronkeytest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestCronKeyStore(t *testing.T) {
	persistencetest.RunBoth(t, cronkeytest.Run, func(db *persistence.DB) cronkey.Store { return access.NewCronKeys(db) })
}
