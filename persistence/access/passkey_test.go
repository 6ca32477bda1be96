package access_test

import (
	"testing"

	"castellan/domain/access/passkey/passkeytest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestPasskeyStore(t *testing.T) {
	persistencetest.RunBoth(t, passkeytest.Run, func(db *persistence.DB) passkeytest.Stores {
		return passkeytest.Stores{Store: access.NewPasskeys(db), Users: access.NewUsers(db)}
	}, "users", "passkey")
}
