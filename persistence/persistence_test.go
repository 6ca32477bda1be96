package persistence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"castellan/domain/audit"
	"castellan/domain/commit"
	"castellan/domain/page"
	"castellan/domain/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence/kit"
)

// both runs a test on a fresh, migrated and started database of each kind.
func both(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	bothWith(t, Options{}, test)
}

func bothWith(t *testing.T, o Options, test func(t *testing.T, db *DB)) {
	t.Helper()
	for _, kind := range []struct {
		name string
		dsn  func(t *testing.T) string
	}{
		{"sqlite", migratedFile},
		{"postgres", func(t *testing.T) string { return pgtest.DSN(t) }},
	} {
		t.Run(kind.name, func(t *testing.T) { test(t, openWith(t, kind.dsn(t), o)) })
	}
}

// migrated is a database of SQLite with every table, made once: a copy costs less than migrating another one.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "persistence-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, ctx := filepath.Join(dir, "test.db"), context.Background()
	db, err := Open(ctx, "sqlite:"+file, Options{})
	if err != nil {
		return nil, err
	}
	err = db.Exclusive(ctx, func(ctx context.Context) error { _, err := Migrate(ctx, db); return err })
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// migratedFile is a database of SQLite for this test alone, which needs no migration.
func migratedFile(t *testing.T) string {
	t.Helper()
	text, err := migrated()
	storetest.Must(t, err)
	file := filepath.Join(t.TempDir(), "test.db")
	storetest.Must(t, os.WriteFile(file, text, 0o600))
	return "sqlite:" + file
}

func openWith(t *testing.T, dsn string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := Migrate(ctx, db)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	Start(db, []byte("audit key of the test"), "test"+time.Now().Format("150405.000000000"))
	return db
}

// suite runs the suite of a contract on both databases. open gets one whose tables
// are emptied before.
func suite[S any](t *testing.T, run func(*testing.T, storetest.Open[S]), open func(*DB) S, tables ...string) {
	t.Helper()
	both(t, func(t *testing.T, db *DB) {
		run(t, func(t *testing.T) (S, commit.Committer) {
			empty(t, db, tables...)
			return open(db), db
		})
	})
}

// empty removes all rows of tables; a table that refers to another one stands
// before it.
func empty(t *testing.T, db *DB, tables ...string) {
	t.Helper()
	for _, table := range tables {
		exec(t, db, "DELETE FROM "+table)
	}
}

// exec runs one statement.
func exec(t *testing.T, db *DB, text string) {
	t.Helper()
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		_, err := db.Conn(ctx).ExecContext(ctx, text)
		return err
	}))
}

// did returns what the audit says of an action, the newest first.
func did(t *testing.T, db *DB, action string) []audit.Stored {
	t.Helper()
	rows, err := kit.NewAudit(db).List(t.Context(), audit.Query{Action: action}, page.Query[audit.Place]{})
	storetest.Must(t, err)
	if len(rows.Records) == 0 {
		t.Fatalf("the audit has no %s", action)
	}
	return rows.Records
}

var errNoAudit = errors.New("no audit")

type noAudit struct{ commit.Committer }

func (noAudit) Commit(context.Context, ...commit.Write) error { return errNoAudit }

// unaudited is a database that refuses every unit, of which an audit row is one.
func unaudited(db *DB) commit.Committer { return noAudit{db} }

type thenDo struct {
	commit.Committer
	do func()
}

func (a thenDo) InTx(ctx context.Context, fn func(context.Context) error) error {
	defer a.do()
	return a.Committer.InTx(ctx, fn)
}

// afterwards is a database that does something as soon as a transaction is committed.
func afterwards(db *DB, do func()) commit.Committer { return thenDo{db, do} }
