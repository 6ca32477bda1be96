package account_test

import (
	"context"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/storetest"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// A change of roles writes the list of each account, and changes nothing if it fails.
func TestFailedChangesOfRoles(t *testing.T) {
	db := persistencetest.SQLite(t)
	one, two := usertest.Sample(1), usertest.Sample(2)
	storetest.Must(t, db.Commit(t.Context(), one, two))
	wants := func(roles ...string) {
		t.Helper()
		for i, id := range []string{one.ID, two.ID} {
			u, err := account.NewUsers(db).Get(t.Context(), id)
			if err != nil || strings.Join(u.Roles, ",") != roles[i] {
				t.Errorf("account %d: %v, %v, want %s", i+1, u.Roles, err, roles[i])
			}
		}
	}
	grants := func(ctx context.Context) error {
		return db.Commit(ctx, user.Grant{UserID: one.ID, Role: "a", At: usertest.Now},
			user.Grant{UserID: two.ID, Role: "b", At: usertest.Now})
	}
	persistencetest.Fails(t, db, "user_role users", grants)
	wants("a", "b")
	persistencetest.Fails(t, db, "user_role users", func(ctx context.Context) error {
		return db.Commit(ctx, user.Revoke{UserID: two.ID, Role: "b"})
	})
	wants("a", "")
}

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
