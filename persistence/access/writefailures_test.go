package access_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/resource"
	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence/access"
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
			u, err := access.NewUsers(db).Get(t.Context(), id)
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
			e, err := access.NewUsers(db).Login(ctx, who, "nobody")
			if (e.User.ID == one.ID) != (err == nil) || (e.Hash == one.PasswordHash) != (err == nil) {
				t.Errorf("%+v: %+v, %v", who, e, err)
			}
			return err
		})
	}
}

// A grant changes together with its line in the log, or not at all.
func TestFailedGrants(t *testing.T) {
	db, now := persistencetest.SQLite(t), time.UnixMilli(1_700_000_000_000)
	ctx, store := t.Context(), access.NewResources(db)
	storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
		return resource.Sync(ctx, store, resource.Table{{Method: "GET", Path: "/x", Name: "X"}}, now)
	}))
	rs, err := store.Resources(ctx)
	storetest.Must(t, err)
	role, err := store.AddRole(ctx, resource.Role{Code: "r", Name: "R"})
	storetest.Must(t, err)
	const tables = "role_resource_permission role_resource_permission_log"
	persistencetest.Fails(t, db, tables, func(ctx context.Context) error {
		id, err := store.SetGrant(ctx, role, rs[0].ID, resource.Allow, now)
		if err == nil && id == 0 {
			t.Error("the grant has no id")
		}
		return err
	})
	persistencetest.Fails(t, db, tables, func(ctx context.Context) error {
		return store.RemoveGrant(ctx, role, rs[0].ID, now.Add(time.Second))
	})
	log, err := store.Log(ctx, resource.LogQuery{}, page.Query[resource.LogPlace]{})
	storetest.Must(t, err)
	var lines []string
	for _, l := range slices.Backward(log.Records) {
		lines = append(lines, string(l.Permission)+" "+l.CreatedAt.UTC().Format("15:04:05"))
	}
	storetest.Same(t, lines, []string{string(resource.Allow) + " 22:13:20", string(resource.Revoked) + " 22:13:21"})
}

// A count of refused logins whose minute cannot be read is an error.
func TestDamagedRefusedLogins(t *testing.T) {
	db := persistencetest.SQLite(t)
	store := access.NewSessions(db)
	at := usertest.Now.Truncate(time.Minute)
	storetest.Must(t, db.Commit(t.Context(), session.Refused{Site: "s", Minute: at, Count: 2}))
	persistencetest.Exec(t, db, "INSERT INTO refused_login (id, count) VALUES ('0000-99 s', 1)")
	var got []session.Refused
	err := db.InTx(t.Context(), func(ctx context.Context) (err error) {
		got, err = store.TakeRefused(ctx, at.Add(time.Minute), 10)
		return err
	})
	if err == nil || got != nil || !strings.HasPrefix(err.Error(), "refused login: ") {
		t.Errorf("%+v, %v", got, err)
	}
}

// The list of pushes has 22 more than the limit of the caller, the newest first.
func TestNumberOfPushes(t *testing.T) {
	db := persistencetest.SQLite(t)
	for n := range int64(30) {
		storetest.Must(t, db.Commit(t.Context(), sendPush(n+1)))
	}
	for limit, want := range map[int]int{0: 22, 1: 23, 7: 29, 8: 30, 9: 30} {
		got, err := access.NewChallenges(db).Pushes(t.Context(), "u1", limit, later)
		if err != nil || len(got) != want || got[0].Number != 30 || got[0].State != challenge.PushState(0) {
			t.Errorf("limit %d: %d pushes, %v, want %d", limit, len(got), err, want)
		}
	}
}
