package persistence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

func TestPurgeRemovesWhatIsOld(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, now := t.Context(), factor.NewChallenges(db), time.Now()
		old, young := persistencetest.Challenge(id.New(now.Add(-time.Hour))), persistencetest.Challenge(id.New(now))
		ended := persistencetest.Challenge(id.New(now.Add(-time.Hour)))
		pending := persistencetest.Challenge(id.New(now.Add(-time.Hour)))
		ended.State = challenge.Done
		storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: ended, Command: []byte("c"), Intent: []byte("i")}))
		storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: pending, Intent: []byte("i")}))
		for _, c := range []challenge.Challenge{old, young} {
			storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: c},
				challenge.Record{Outcome: challenge.Outcome{ChallengeID: c.ID, ExpiresAt: now.UnixMilli(),
					Sealed: []byte("x")}}))
		}
		lives := challenge.Outcome{ChallengeID: id.New(now.Add(-time.Hour)), ExpiresAt: now.UnixMilli() + 1,
			Sealed: []byte("x")} // of a long challenge
		storetest.Must(t, db.Commit(ctx, challenge.Record{Outcome: lives}))
		storetest.Must(t, store.Purge(ctx, now.Add(-time.Minute)))
		storetest.Must(t, store.PurgeOutcomes(ctx, now, now.Add(-time.Minute)))
		if _, err := store.Load(ctx, young.ID); err != nil {
			t.Errorf("the young one: %v", err)
		}
		if _, err := store.Load(ctx, old.ID); fault.CodeOf(err) != fault.ChallengeNotFound {
			t.Errorf("the old one: %v", err)
		}
		for range 2 { // of what ended, the evidence stays
			kept, err := store.Evidence(ctx, ended.ID)
			if err != nil || string(kept.Intent) != "i" || kept.Command != nil || kept.State != challenge.Done ||
				len(kept.Methods) != len(ended.Methods) {
				t.Errorf("evidence %+v, %v", kept, err)
			}
			storetest.Must(t, store.Purge(ctx, now.Add(-time.Minute)))
		}
		for _, none := range []string{pending.ID, young.ID, "unknown"} {
			if _, err := store.Evidence(ctx, none); fault.CodeOf(err) != fault.RecordNotFound {
				t.Errorf("evidence of %s: %v", none, err)
			}
		}
		storetest.Must(t, store.PurgeEvidence(ctx, now))
		if _, err := store.Evidence(ctx, ended.ID); fault.CodeOf(err) != fault.RecordNotFound {
			t.Errorf("old evidence: %v", err)
		}
		if n, err := db.Conn(ctx).NewSelect().Table("outcome").Count(ctx); n != 2 || err != nil {
			t.Errorf("%d outcomes are left, want that of the young one and the one that lives, %v", n, err)
		}
	})
}

// A table without an index for its age is looked through part by part, and then
// from the beginning again.
func TestPurgeByParts(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, guards := t.Context(), account.NewPasswordGuards(db)
		at := time.UnixMilli(1_700_000_000_000)
		const all = engine.PurgeLook + 10
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			for from := 0; from < all; from += 1000 {
				var ws []commit.Write
				for i := from; i < min(from+1000, all); i++ {
					until := at.Add(time.Hour)
					if i%1000 == 5 || i >= engine.PurgeLook { // one in a thousand, and all of the second part
						until = at
					}
					ws = append(ws, password.SaveGuard{Guard: password.Guard{Key: fmt.Sprintf("%06d", i)},
						Until: until})
				}
				if err := db.Commit(ctx, ws...); err != nil {
					return err
				}
			}
			return nil
		}))
		left := func() int {
			n, err := db.Conn(ctx).NewSelect().Table("password_guard").Count(ctx)
			storetest.Must(t, err)
			return int(n)
		}
		for i, want := range []int{all - engine.PurgeLook/1000, all - engine.PurgeLook/1000 - 10,
			all - engine.PurgeLook/1000 - 10} {
			storetest.Must(t, guards.Purge(ctx, at.Add(time.Minute)))
			if n := left(); n != want {
				t.Errorf("after %d times %d rows are left, want %d", i+1, n, want)
			}
		}
		storetest.Must(t, guards.Purge(ctx, at.Add(2*time.Hour)))
		if n := left(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
