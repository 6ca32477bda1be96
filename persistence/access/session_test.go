package access_test

import (
	"path/filepath"
	"testing"

	"castellan/domain/access/session/sessiontest"
	"castellan/domain/access/user/usertest"
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
