package access_test

import (
	"testing"

	"castellan/domain/access/totp/totptest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestTOTPStore(t *testing.T) {
	persistencetest.RunBoth(t, totptest.Run, func(db *persistence.DB) totptest.Stores {
		return totptest.Stores{Store: access.NewTOTP(db), Users: access.NewUsers(db)}
	}, "users", "totp", "recovery_code")
}
