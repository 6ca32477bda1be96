package account_test

import (
	"context"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/storetest"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// A login without its tables fails, and names no account.
func TestFailedLogin(t *testing.T) {
	db := persistencetest.SQLite(t)
	one := usertest.Sample(1)
	storetest.Must(t, db.Commit(t.Context(), one))
	for _, who := range []user.Identifier{{Phone: one.Phone}, {Mail: one.Email}} {
		persistencetest.Fails(t, db, "users password_guard", func(ctx context.Context) error {
			e, err := account.NewUsers(db).Login(ctx, who, "nobody")
			if (e.User.ID == one.ID) != (err == nil) || (e.Hash == one.PasswordHash) != (err == nil) {
				t.Errorf("%+v: %+v, %v", who, e, err)
			}
			return err
		})
	}
}
