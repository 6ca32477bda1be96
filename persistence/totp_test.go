package persistence

import (
	"testing"

	"castellan/domain/access/totp/totptest"
)

func TestTOTPStore(t *testing.T) {
	suite(t, totptest.Run, func(db *DB) totptest.Stores {
		return totptest.Stores{Store: NewTOTP(db), Users: NewUsers(db)}
	}, "users", "totp", "recovery_code")
}
