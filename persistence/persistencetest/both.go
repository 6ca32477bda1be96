package persistencetest

import (
	"context"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence"
)

// Both runs a test on a fresh, migrated and started database of each kind.
func Both(t *testing.T, test func(t *testing.T, db *persistence.DB)) {
	t.Helper()
	BothWith(t, persistence.Options{}, test)
}

func BothWith(t *testing.T, o persistence.Options, test func(t *testing.T, db *persistence.DB)) {
	t.Helper()
	for _, kind := range []struct {
		name string
		dsn  func(t *testing.T) string
	}{
		{"sqlite", func(t *testing.T) string { return File(t) }},
		{"postgres", func(t *testing.T) string { return pgtest.DSN(t) }},
	} {
		t.Run(kind.name, func(t *testing.T) { test(t, OpenWith(t, kind.dsn(t), o)) })
	}
}

// OpenWith opens, migrates and starts a database that ends with the test. Without a timeout of the options it waits a
// minute, because the machine may stall.
func OpenWith(t testing.TB, dsn string, o persistence.Options) *persistence.DB {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	db := storetest.Value(persistence.Open(t.Context(), dsn, o))(t)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := persistence.Migrate(ctx, db)
		return err
	}))
	persistence.Start(db, []byte(AuditKey), "test"+time.Now().Format("150405.000000000"))
	return db
}

// RunBoth runs the suite of a contract on both databases. open gets one whose tables
// are emptied before; a table that refers to another one comes before it.
func RunBoth[S any](t *testing.T, run func(*testing.T, storetest.Open[S]), open func(*persistence.DB) S,
	tables ...string) {
	t.Helper()
	Both(t, func(t *testing.T, db *persistence.DB) {
		run(t, func(t *testing.T) (S, commit.Committer) {
			Empty(t, db, tables...)
			return open(db), db
		})
	})
}

// RunCases runs the cases of a store on both databases. Each case gets the store that open returns, whose tables are
// emptied before; a table that refers to another one comes before it.
func RunCases[S any](t *testing.T, open func(*persistence.DB) S, cases storetest.Cases[S], tables ...string) {
	t.Helper()
	RunBoth(t, func(t *testing.T, open storetest.Open[S]) { storetest.Run(t, open, cases) }, open, tables...)
}

// Empty removes all rows of tables; a table that refers to another one comes before it.
func Empty(t *testing.T, db *persistence.DB, tables ...string) {
	t.Helper()
	for _, table := range tables {
		Exec(t, db, "DELETE FROM "+table)
	}
}

// AccountTables are those of accounts, which several suites share.
var AccountTables = []string{"users", "user_role", "password_guard", "session", "session_key",
	"login_history", "device_proof"}
