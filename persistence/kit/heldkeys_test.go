package kit_test

import (
	"maps"
	"testing"

	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// Held counts accounts with unused recovery codes, and scheduled clients, by the key of their hashes.
func TestHeldHashes(t *testing.T) {
	db := persistencetest.SQLite(t)
	for _, values := range []string{"'u1', 1, 't', 'k1', 'h', 0", "'u1', 2, 't', 'k1', 'h', 0",
		"'u2', 1, 't', 'k1', 'h', 0", "'u3', 1, 't', 'k1', 'h', 9", "'u4', 1, 't', 'k2', 'h', 0"} {
		persistencetest.Exec(t, db, "INSERT INTO recovery_code (user_id, number, totp_id, hash_key, hash, used_at) VALUES ("+
			values+")")
	}
	for _, values := range []string{"'c1', 'k1', 'h', 1", "'c2', 'k3', 'h', 1", "'c3', 'k3', 'h', 1"} {
		persistencetest.Exec(t, db, "INSERT INTO cron_key (name, hash_key, hash, created_at) VALUES ("+values+")")
	}
	recovery, cron, err := kit.NewKeys(db).Held(t.Context())
	if err != nil || !maps.Equal(recovery, map[string]int{"k1": 2, "k2": 1}) ||
		!maps.Equal(cron, map[string]int{"k1": 1, "k3": 2}) {
		t.Errorf("recovery %v, cron %v, %v", recovery, cron, err)
	}
}
