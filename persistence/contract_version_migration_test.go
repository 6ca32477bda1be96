package persistence

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"castellan/domain/kit/storetest"
)

// The migration that makes the table of contracts again keeps every contract, its id and its details. The details still
// refer to the table, and the ids of new contracts follow those of old ones.
func TestContractVersionMigration(t *testing.T) {
	const rebuild = "0074_contract_version.sql"
	file := filepath.Join(t.TempDir(), "test.db")
	db, err := Open(t.Context(), "sqlite:"+file, Options{})
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := db.Migrate(ctx, migrationsBefore(t, rebuild))
		return err
	}))
	raw, err := sql.Open("sqlite", "file:"+file+"?_pragma=foreign_keys(1)")
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, raw.Close()) })
	exec := func(statement string) error {
		_, err := raw.ExecContext(t.Context(), statement)
		return err
	}
	storetest.Must(t, exec(`INSERT INTO contract (id, code, name, version, active, created_at) VALUES
		(3, 'TERMS', 'Terms', NULL, TRUE, 1700000000001), (7, 'SALES', 'Sales', '2026-1', FALSE, 1700000000002)`))
	storetest.Must(t, exec(`INSERT INTO contract_detail (contract_id, title, content, policy, order_no, created_at,
		updated_at) VALUES (3, 't', 'c', '1', 1, 1, 1), (7, 'u', 'd', '1', 1, 1, 1)`))
	const kept = "SELECT id, code, name, version, active, created_at FROM contract ORDER BY id"
	before, details := lines(t, raw, kept), lines(t, raw, "SELECT * FROM contract_detail ORDER BY id")

	var applied []string
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) (err error) {
		applied, err = db.Migrate(ctx, migrationsBefore(t, "0075"))
		return err
	}))
	if !slices.Equal(applied, []string{rebuild}) {
		t.Fatalf("applied %v", applied)
	}
	storetest.Same(t, lines(t, raw, kept), before)
	storetest.Same(t, lines(t, raw, "SELECT * FROM contract_detail ORDER BY id"), details)
	storetest.Same(t, lines(t, raw, "SELECT id FROM contract WHERE published_at = created_at"), []string{"3"})
	if broken := lines(t, raw, "PRAGMA foreign_key_check"); len(broken) > 0 {
		t.Errorf("broken references %v", broken)
	}
	if exec("DELETE FROM contract WHERE id = 7") == nil {
		t.Error("a contract with details was deleted")
	}
	// As the release before this one adds a contract.
	storetest.Must(t, exec("INSERT INTO contract (code, name, active, created_at) VALUES ('NEW', 'New', TRUE, 1)"))
	storetest.Same(t, lines(t, raw, "SELECT id FROM contract WHERE code = 'NEW'"), []string{"8"})
	for _, taken := range []string{"('TERMS', 'Again', FALSE, 1)", "('NEW', 'Again', TRUE, 1)"} {
		if exec("INSERT INTO contract (code, name, active, created_at) VALUES "+taken) == nil {
			t.Errorf("%s was added", taken)
		}
	}
}
