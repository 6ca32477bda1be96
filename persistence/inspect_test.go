package persistence_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// A database that is opened read-only is neither made nor migrated, refuses writes, and says what it lacks.
func TestReadOnly(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			ctx := t.Context()
			var dsn string
			if kind == "postgres" {
				dsn = pgtest.Empty(t)
			} else {
				file := filepath.Join(t.TempDir(), "data", "test.db")
				dsn = "sqlite:" + file
				storetest.Is(t, storetest.Err(persistence.Open(ctx, dsn, persistence.Options{ReadOnly: true})), fs.ErrNotExist)
				storetest.Fails(t, storetest.Err(os.Stat(filepath.Dir(file))), "", "its folder was made")
				storetest.Must(t, os.Mkdir(filepath.Dir(file), 0o700))
				storetest.Must(t, os.WriteFile(file, nil, 0o600))
			}
			look := func() (pending []string, db *persistence.DB) {
				t.Helper()
				db = storetest.Value(persistence.Open(ctx, dsn, persistence.Options{ReadOnly: true}))(t)
				t.Cleanup(func() { storetest.Must(t, db.Close()) })
				pending = storetest.Value(persistence.Pending(ctx, db))(t)
				return pending, db
			}
			if pending, db := look(); len(pending) < 10 {
				t.Errorf("an empty database lacks %q", pending)
			} else if _, err := persistence.Migrate(ctx, db); err == nil {
				t.Error("it was migrated")
			}
			full := persistencetest.OpenWith(t, dsn, persistence.Options{})
			pending, db := look()
			if len(pending) > 0 {
				t.Errorf("a migrated database lacks %q", pending)
			}
			facts := storetest.Value(db.Facts(ctx))(t)
			if facts.ReadOnly || kind == "postgres" && (time.Since(facts.Now).Abs() > time.Minute ||
				strings.Join(facts.Lossy, " ") != "fsync full_page_writes") { // so are the servers of the tests
				t.Errorf("facts: %+v", facts)
			}
			storetest.Value(kit.NewParameters(db).List(ctx, parameter.Query{}))(t)
			if _, err := db.Pools()[map[string]string{"sqlite": "readers", "postgres": "pool"}[kind]].ExecContext(ctx,
				"DELETE FROM parameter"); err == nil {
				t.Error("it was written to")
			}
			if kind == "postgres" {
				_, err := full.Pools()["pool"].ExecContext(ctx, "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || "+
					"' SET default_transaction_read_only = on'; END $$")
				storetest.Must(t, err)
				_, db := look()
				if facts, err := db.Facts(ctx); err != nil || !facts.ReadOnly {
					t.Errorf("a server that is read-only: %+v, %v", facts, err)
				}
			}
		})
	}
}

// A read-only opening beside a running service sees its writes and leaves nothing beside the file.
func TestReadOnlyBesideAService(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	full := persistencetest.OpenWith(t, "sqlite:"+file, persistence.Options{})
	_, err := full.Pools()["writer"].ExecContext(t.Context(),
		"INSERT INTO schema_migrations (name, applied_at) VALUES ('9999_later.sql', 1)")
	storetest.Must(t, err)
	db := storetest.Value(persistence.Open(t.Context(), "sqlite:"+file, persistence.Options{ReadOnly: true}))(t)
	var n int
	err = db.Pools()["readers"].QueryRowContext(t.Context(),
		"SELECT count(*) FROM schema_migrations WHERE name = '9999_later.sql'").Scan(&n)
	storetest.Must(t, errors.Join(err, db.Close()))
	storetest.Equal(t, n, 1, "a write of the service is not seen")
	storetest.Must(t, full.Close())
	if db, err = persistence.Open(t.Context(), "sqlite:"+file, persistence.Options{ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	storetest.Must(t, errors.Join(db.Ping(t.Context()), db.Close()))
	for _, beside := range []string{"-wal", "-shm"} {
		storetest.Fails(t, storetest.Err(os.Stat(file+beside)), "", beside)
	}
}
