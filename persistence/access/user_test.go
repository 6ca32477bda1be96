package access_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/access/password"
	"castellan/domain/access/password/passwordtest"
	"castellan/domain/access/session"
	"castellan/domain/access/session/sessiontest"
	"castellan/domain/access/user"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/engine"
	"castellan/persistence/persistencetest"
)

// accountTables are those of accounts, which several suites share.
var accountTables = []string{"users", "user_role", "password_guard", "session", "session_key",
	"login_history", "device_proof"}

func TestUserStore(t *testing.T) {
	persistencetest.RunBoth(t, usertest.Run, func(db *persistence.DB) user.Store { return access.NewUsers(db) },
		accountTables...)
}

func TestUserDirectory(t *testing.T) {
	persistencetest.RunBoth(t, usertest.RunDirectory,
		func(db *persistence.DB) user.Directory { return access.NewUsers(db) }, accountTables...)
}

func TestPasswordGuardStore(t *testing.T) {
	persistencetest.RunBoth(t, passwordtest.Run,
		func(db *persistence.DB) password.GuardStore { return access.NewPasswordGuards(db) }, accountTables...)
}

func TestSessionStore(t *testing.T) {
	persistencetest.RunBoth(t, sessiontest.Run, func(db *persistence.DB) session.Store { return access.NewSessions(db) },
		accountTables...)
}

// A purge of many rows goes on until they are gone.
func TestPurgeTakesAsManyBatchesAsItNeeds(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		const old, young = 2*engine.PurgeBatch + 1, 3
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			for i := 0; i < old+young; i += 100 {
				var ws []commit.Write
				for j := i; j < min(i+100, old+young); j++ {
					at := usertest.Now
					if j >= old {
						at = at.Add(time.Hour)
					}
					ws = append(ws, session.Remember{Login: session.Login{ID: fmt.Sprintf("%026d", j), UserID: "u",
						At: at}})
				}
				if err := db.Commit(ctx, ws...); err != nil {
					return err
				}
			}
			return nil
		}))
		store := access.NewSessions(db)
		storetest.Must(t, store.Purge(ctx, time.Time{}, usertest.Now.Add(time.Minute)))
		left, err := store.Logins(ctx, "u", page.Query[session.LoginPlace]{})
		if err != nil || len(left.Records) != young {
			t.Errorf("%d lines are left, %v", len(left.Records), err)
		}
	})
}
