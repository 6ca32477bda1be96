package persistence

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
	"castellan/persistence/engine"
)

// accountTables are those of accounts, which several suites share.
var accountTables = []string{"users", "user_role", "password_guard", "session", "login_history"}

func TestUserStore(t *testing.T) {
	suite(t, usertest.Run, func(db *DB) user.Store { return NewUsers(db) }, accountTables...)
}

func TestUserDirectory(t *testing.T) {
	suite(t, usertest.RunDirectory, func(db *DB) user.Directory { return NewUsers(db) }, accountTables...)
}

func TestPasswordGuardStore(t *testing.T) {
	suite(t, passwordtest.Run, func(db *DB) password.GuardStore { return NewPasswordGuards(db) }, accountTables...)
}

func TestSessionStore(t *testing.T) {
	suite(t, sessiontest.Run, func(db *DB) session.Store { return NewSessions(db) }, accountTables...)
}

// A purge of many rows goes on until they are gone.
func TestPurgeTakesAsManyBatchesAsItNeeds(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
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
		store := NewSessions(db)
		storetest.Must(t, store.Purge(ctx, time.Time{}, usertest.Now.Add(time.Minute)))
		left, err := store.Logins(ctx, "u", page.Query[session.LoginPlace]{})
		if err != nil || len(left.Records) != young {
			t.Errorf("%d lines are left, %v", len(left.Records), err)
		}
	})
}
