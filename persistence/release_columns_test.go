package persistence

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// Programs of 0.9 run beside the migrations of 0.10. They read every column of some tables and fail at one that they do
// not know, so only tables whose columns they name have new ones. From 0.10 on, programs ignore unknown columns.
func TestNewColumnsAreInTablesThat0_9ReadsByName(t *testing.T) {
	byName := []string{"asset_day", "day", "deposit", "passkey", "users", "withdrawal", "withdrawal_address"}
	db, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"), Options{})
	storetest.Must(t, err)
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
