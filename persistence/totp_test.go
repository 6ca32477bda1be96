package persistence

import (
	"testing"

	"castellan/domain/commit"
	"castellan/domain/totp"
	"castellan/domain/totp/totptest"
	"castellan/domain/user"
)

func TestTOTPStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		totptest.TestStore(t, func(t *testing.T) (totp.Store, user.Store, commit.Committer) {
			empty(t, db, "users", "totp", "recovery_code")
			return NewTOTP(db), NewUsers(db), db
		})
	})
}
