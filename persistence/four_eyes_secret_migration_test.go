package persistence

import (
	"context"
	"database/sql"
	"io/fs"
	"path/filepath"
	"testing"

	"castellan/domain/kit/storetest"
)

// The migration deletes the stored keys of service clients, and nothing else of the approvals (D-EXT-08).
func TestFourEyesSecretMigration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	db, err := Open(t.Context(), "sqlite:"+file, Options{})
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	migrate := func(some fs.FS) {
		storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
			_, err := db.Migrate(ctx, some)
			return err
		}))
	}
	migrate(migrationsBefore(t, "0096"))
	raw, err := sql.Open("sqlite", "file:"+file)
	storetest.Must(t, err)
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
