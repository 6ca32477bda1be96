package access_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"castellan/domain/access/session"
	"castellan/domain/access/session/sessiontest"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The births of one process and the change of another: no order of two commits
// lets a session survive (D-AUTH-11).
func TestBirthsOfAnotherProcess(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"),
		"postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			a, b := persistencetest.OpenWith(t, dsn, persistence.Options{}), persistencetest.OpenWith(t, dsn,
				persistence.Options{})
			storetest.Must(t, a.Commit(t.Context(), usertest.Sample(1)))
			sessiontest.Births(t, access.NewSessions(b), a, b)
		})
	}
}

// A node of the release before writes a session without history and a line of its own. The login is listed once, before
// and after the purge of the session.
func TestHistoryOfEarlierRelease(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"),
		"postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			ctx, now := t.Context(), usertest.Now
			db := persistencetest.OpenWith(t, dsn, persistence.Options{})
			store, one := access.NewSessions(db), usertest.Sample(1)
			line := session.Login{ID: id.New(now), UserID: one.ID, At: now, IP: "192.0.2.1", Success: true}
			storetest.Must(t, db.Commit(ctx, one, session.Remember{Login: line}))
			storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
				_, err := db.Conn(ctx).NewRaw("INSERT INTO session (id, user_id, created_at, last_seen_at, expires_at, "+
					"ended_at, ip, country, brand, model, description, device_id, sv, amr) "+
					"VALUES (?, ?, ?, ?, ?, 0, '192.0.2.1', '', '', '', '', '', 1, 'pwd')", id.New(now), one.ID,
					now.UnixMilli(), now.UnixMilli(), now.UnixMilli()).Exec(ctx)
				return err
			}))
			for range 2 {
				got, err := store.Logins(ctx, one.ID, page.Query[session.LoginPlace]{})
				storetest.Must(t, err)
				if !slices.Equal(got.Records, []session.Login{line}) {
					t.Errorf("history %+v, want %+v", got.Records, line)
				}
				storetest.Must(t, store.Purge(ctx, now.Add(time.Minute), now.Add(-time.Hour)))
			}
		})
	}
}
