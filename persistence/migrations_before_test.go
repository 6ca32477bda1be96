package persistence

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"castellan/domain/kit/storetest"
	"castellan/persistence/engine"
)

// migrationsBefore are the migrations of SQLite that come before one.
func migrationsBefore(t *testing.T, first string) fs.FS {
	t.Helper()
	all := storetest.Value(engine.MigrationsOf(migrations, false))(t)
	some := fstest.MapFS{}
	for _, m := range all {
		if m.Name < first {
			some["migrations/sqlite/"+m.Name] = &fstest.MapFile{Data: []byte(m.Text)}
		}
	}
	if len(some) < 50 || len(some) == len(all) {
		t.Fatalf("%d of %d migrations come before %s", len(some), len(all), first)
	}
	return some
}

// lines are the rows of a query, one a line.
func lines(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows := storetest.Value(db.QueryContext(t.Context(), query))(t)
	defer rows.Close()
	columns := storetest.Value(rows.Columns())(t)
	for rows.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		storetest.Must(t, rows.Scan(into...))
		all = append(all, fmt.Sprint(cells...))
	}
	storetest.Must(t, rows.Err())
	return all
}

// Programs of 0.9 run beside the migrations of 0.10. They read every column of some tables and fail at one that they do
// not know, so only tables whose columns they name have new ones. From 0.10 on, programs ignore unknown columns.
func TestNewColumnsAreInTablesThat0_9ReadsByName(t *testing.T) {
	byName := []string{"asset_day", "day", "deposit", "passkey", "users", "withdrawal", "withdrawal_address"}
	db := storetest.Value(Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"), Options{}))(t)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	columns := func(files fs.FS) (all []string) {
		storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
			_, err := db.Migrate(ctx, files)
			return err
		}))
		storetest.Must(t, db.Conn(t.Context()).NewRaw(`SELECT t.name || '.' || c.name FROM sqlite_master AS t,
			pragma_table_info(t.name) AS c WHERE t.type = 'table'`).Scan(t.Context(), &all))
		return all
	}
	before := columns(migrationsBefore(t, "0096_four_eyes_secret.sql"))
	for _, c := range columns(migrations) {
		table, _, _ := strings.Cut(c, ".")
		isOld := slices.ContainsFunc(before, func(b string) bool { return strings.HasPrefix(b, table+".") })
		if isOld && !slices.Contains(before, c) && !slices.Contains(byName, table) {
			t.Errorf("0.9 fails at %s", c)
		}
	}
}

// The migration deletes the stored keys of service clients, and nothing else of the approvals (D-EXT-08).
func TestFourEyesSecretMigration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	db := storetest.Value(Open(t.Context(), "sqlite:"+file, Options{}))(t)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	migrate := func(some fs.FS) {
		storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
			_, err := db.Migrate(ctx, some)
			return err
		}))
	}
	migrate(migrationsBefore(t, "0096"))
	raw := storetest.Value(sql.Open("sqlite", "file:"+file))(t)
	t.Cleanup(func() { storetest.Must(t, raw.Close()) })
	for id, row := range map[string]string{"a": "'POST', '/admin/service-keys', 'APPROVED'",
		"b": "'POST', '/admin/service-keys/rotate', 'APPROVED'", "c": "'POST', '/admin/service-keys', 'FAILED'",
		"d": "'PATCH', '/admin/service-keys', 'APPROVED'", "e": "'POST', '/admin/roles', 'APPROVED'"} {
		_, err := raw.ExecContext(t.Context(), "INSERT INTO four_eyes (id, method, path, status, summary, requested_by, "+
			"requested_at, expires_at, decided_by, decided_at, reason, result) VALUES ('"+id+"', "+row+
			", '', '', 1, 1, '', 1, '', 'sealed')")
		storetest.Must(t, err)
	}
	migrate(migrations)
	storetest.Same(t, lines(t, raw, "SELECT id FROM four_eyes WHERE result IS NOT NULL ORDER BY id"),
		[]string{"c", "d", "e"})
	storetest.Same(t, lines(t, raw, "SELECT id FROM four_eyes WHERE result IS NULL ORDER BY id"), []string{"a", "b"})
}
