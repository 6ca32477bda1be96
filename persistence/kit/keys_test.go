package kit_test

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestKeys(t *testing.T) {
	persistencetest.RunBoth(t, keyringtest.Run, func(db *persistence.DB) keyring.Store { return kit.NewKeys(db) }, "keys")
}

// A process that starts needs its keys before the writer, and tells the others of
// the keys it made; a refused change tells nothing.
func TestKeysAreAnnounced(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := kit.NewKeys(db)
		count := func() int {
			t.Helper()
			entries := storetest.Value(kit.NewChanges(db).Since(t.Context(), time.Now().Add(-time.Hour)))(t)
			n := 0
			for _, e := range entries {
				if e.Topic == change.Keys {
					n++
				}
			}
			return n
		}
		file := filepath.Join(t.TempDir(), "master.key")
		k, err := keyring.Open(t.Context(), s, file, true, time.Now)
		if err != nil || count() != 1 {
			t.Fatalf("first start: %v, %d notes", err, count())
		}
		if _, err := keyring.Open(t.Context(), s, file, false, time.Now); err != nil || count() != 1 {
			t.Errorf("second start: %v, %d notes", err, count())
		}
		if _, err := k.Rotate(t.Context(), keyring.Signing, time.Hour, false); err != nil || count() != 2 {
			t.Errorf("rotation: %v, %d notes", err, count())
		}
		if _, err := k.Rotate(t.Context(), keyring.Signing, time.Hour,
			false); fault.CodeOf(err) != fault.InvalidState || count() != 2 {
			t.Errorf("refused rotation: %v, %d notes", err, count())
		}
		if _, err := k.RotateMaster(t.Context()); err != nil || count() != 3 {
			t.Errorf("rotation of the master key: %v, %d notes", err, count())
		}
		storetest.Must(t, k.Reload(t.Context()))
	})
}

// A rotation joins the transaction of its caller, who may add an audit row.
func TestKeysJoinATransaction(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := kit.NewKeys(db)
		k, err := keyring.Open(t.Context(), s, filepath.Join(t.TempDir(), "master.key"), true, time.Now)
		storetest.Must(t, err)
		boom := fault.New(fault.Internal, "undo")
		err = db.InTx(t.Context(), func(ctx context.Context) error {
			if _, err := k.Rotate(ctx, keyring.Sealing, 0, false); err != nil {
				return err
			}
			return boom
		})
		if fault.CodeOf(err) != fault.Internal {
			t.Fatal(err)
		}
		storetest.Equal(t, len(storetest.Value(s.Keys(t.Context()))(t)), 4)
	})
}

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
