package kit_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
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
	persistencetest.Fails(t, db, "recovery_code cron_key", func(ctx context.Context) error {
		recovery, cron, err := kit.NewKeys(db).Held(ctx)
		if err == nil && (!maps.Equal(recovery, map[string]int{"k1": 2, "k2": 1}) ||
			!maps.Equal(cron, map[string]int{"k1": 1, "k3": 2})) {
			t.Errorf("recovery %v, cron %v", recovery, cron)
		}
		return err
	})
}

// A change of keys that fails midway changes none.
func TestFailedChangesOfKeys(t *testing.T) {
	db := persistencetest.SQLite(t)
	key := func(id, master string) keyring.Record {
		return keyring.Record{ID: id, Purpose: keyring.Signing, Seq: int64(len(id)), MasterID: master, Wrapped: []byte(id)}
	}
	store := kit.NewKeys(db)
	persistencetest.Fails(t, db, "keys change", func(ctx context.Context) error { return store.Add(ctx, key("a", "m1")) })
	persistencetest.Fails(t, db, "keys change", func(ctx context.Context) error {
		return store.Rotate(ctx, key("aa", "m1"), keyring.Record{ID: "a", RetiredAt: time.UnixMilli(5)})
	})
	persistencetest.Fails(t, db, "keys change", func(ctx context.Context) error {
		return store.Rewrap(ctx, "m1", []keyring.Record{key("a", "m2"), key("aa", "m2")})
	})
	all, err := store.Keys(t.Context())
	storetest.Must(t, err)
	if len(all) != 2 || all[0].MasterID != "m2" || all[1].MasterID != "m2" || counted(t, db, "change") != 3 {
		t.Errorf("%+v", all)
	}
}

// A write of jobs that fails changes nothing.
func TestFailedWritesOfJobs(t *testing.T) {
	db := persistencetest.SQLite(t)
	store, now := kit.NewJobs(db), time.UnixMilli(1_700_000_000_000)
	j := job.Job{ID: id.New(now), Kind: "k", Key: "1", CreatedAt: now, Params: []byte("p")}
	persistencetest.Fails(t, db, "job", func(ctx context.Context) error {
		stored, added, err := store.Add(ctx, j)
		if added != (err == nil) || (stored.ID == j.ID) != (err == nil) {
			t.Errorf("%+v, %t, %v", stored, added, err)
		}
		return err
	})
	for n, state := range []job.ItemState{job.ItemUnknown, job.ItemUnknown, job.ItemNew} {
		persistencetest.Exec(t, db, "INSERT INTO job_item (job_id, n, ref, state, error) VALUES (?, ?, ?, ?, '')", j.ID, n, n,
			int16(state))
	}
	persistencetest.Fails(t, db, "job_item", func(ctx context.Context) error {
		n, err := store.Renew(ctx, j.ID)
		if want := int64(2); err == nil && n != want || err != nil && n != 0 {
			t.Errorf("%d renewed, %v", n, err)
		}
		return err
	})
	persistencetest.Fails(t, db, "job job_item", func(ctx context.Context) error {
		return store.Purge(ctx, now.Add(time.Hour))
	})
	if n, items := counted(t, db, "job"), counted(t, db, "job_item"); n != 0 || items != 0 {
		t.Errorf("%d jobs, %d items", n, items)
	}
}
