package persistence_test

import (
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// A guard is purged when its time is over. The engine's tests show that a purge looks through a large table in parts.
func TestPasswordGuardsArePurged(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(1_700_000_000_000)
		storetest.Must(t, db.Commit(t.Context(), password.SaveGuard{Guard: password.Guard{Key: "a"}, Until: at},
			password.SaveGuard{Guard: password.Guard{Key: "b"}, Until: at.Add(time.Hour)}))
		for i, want := range []int{2, 1, 0} {
			storetest.Must(t, account.NewPasswordGuards(db).Purge(t.Context(), at.Add(time.Duration(i)*31*time.Minute)))
			storetest.Equal(t, persistencetest.Count(t, db, "password_guard"), want, i)
		}
	})
}
