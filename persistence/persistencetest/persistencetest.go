// Package persistencetest opens databases for tests of services, which need real stores and no particular database.
package persistencetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"castellan/domain/commit"
	"castellan/domain/storetest"
	"castellan/persistence"
)

// AuditKey is the key of the audit in these databases.
const AuditKey = "audit key of the test"

// SQLite returns a database with all tables that ends with the test.
func SQLite(t testing.TB) *persistence.DB {
	t.Helper()
	file, err := template()
	storetest.Must(t, err)
	name := filepath.Join(t.TempDir(), "test.db")
	storetest.Must(t, os.WriteFile(name, file, 0o600))
	db, err := persistence.Open(t.Context(), "sqlite:"+name, persistence.Options{})
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	db.Start([]byte(AuditKey), "test")
	return db
}

// template is the file of a database to which all migrations were applied, once in a process.
var template = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "persistencetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, name := context.Background(), filepath.Join(dir, "test.db")
	db, err := persistence.Open(ctx, "sqlite:"+name, persistence.Options{})
	if err != nil {
		return nil, err
	}
	err = db.Exclusive(ctx, func(ctx context.Context) error { _, err := db.Migrate(ctx); return err })
	if closed := db.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
})

// Suite opens the store of a suite on SQLite, each time in a database of its own.
func Suite[S any](open func(db *persistence.DB) S) storetest.Open[S] {
	return func(t *testing.T) (S, commit.Committer) {
		db := SQLite(t)
		return open(db), db
	}
}
