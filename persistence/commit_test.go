package persistence_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// A refused unit leaves nothing behind, and does not harm its neighbours.
func TestUnitsAreAtomic(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), factor.NewChallenges(db)
		storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge("old")}))
		stale, _ := store.Load(ctx, "old")
		stale.Version = 9
		var wg sync.WaitGroup
		var fenced, exists, ok atomic.Int32
		count := func(err error) {
			switch {
			case err == nil:
				ok.Add(1)
			case errors.Is(err, commit.ErrFenced):
				fenced.Add(1)
			case fault.CodeOf(err) == fault.RecordAlreadyExist:
				exists.Add(1)
			default:
				t.Error(err)
			}
		}
		for i := range 60 {
			wg.Go(func() {
				id := fmt.Sprintf("n%02d", i)
				switch i % 3 {
				case 0: // good
					count(db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge(id)}))
				case 1: // its fence fails
					count(db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge(id)},
						challenge.Update{Challenge: stale}))
				default: // its key is taken
					count(db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge(id)},
						challenge.Insert{Challenge: persistencetest.Challenge("old")}))
				}
			})
		}
		wg.Wait()
		if ok.Load() != 20 || fenced.Load() != 20 || exists.Load() != 20 {
			t.Errorf("%d committed, %d fenced, %d refused", ok.Load(), fenced.Load(), exists.Load())
		}
		refs := storetest.Value(store.Open(ctx, "u1", time.Now()))(t)
		storetest.Equal(t, len(refs), 21)
	})
}

// Two hundred writers race for one row; each sees the version it read or is
// fenced, so the counter in the row counts every success once.
func TestFenceUnderRace(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), factor.NewChallenges(db)
		storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge("c")}))
		var wg sync.WaitGroup
		var won atomic.Int32
		for range 200 {
			wg.Go(func() {
				c, err := store.Load(ctx, "c")
				if err != nil {
					t.Error(err)
					return
				}
				c.Wrong++
				if err := db.Commit(ctx, challenge.Update{Challenge: c}); err == nil {
					won.Add(1)
				} else if !errors.Is(err, commit.ErrFenced) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		c := storetest.Value(store.Load(ctx, "c"))(t)
		if c.Wrong != int(won.Load()) || won.Load() == 0 {
			t.Errorf("%d successes, the row counted %d", won.Load(), c.Wrong)
		}
	})
}

func TestBudgetIsFencedFromItsFirstRow(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), factor.NewChallenges(db)
		b := storetest.Value(store.Budget(ctx, "u1", challenge.FlowLogin))(t)
		b.OTP = []int64{1}
		var wg sync.WaitGroup
		var won atomic.Int32
		for range 20 {
			wg.Go(func() {
				if err := db.Commit(ctx, challenge.Spend{Budget: b}); err == nil {
					won.Add(1)
				} else if !errors.Is(err, commit.ErrFenced) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d first writes", won.Load())
		}
		key := challenge.BudgetKey("u1", challenge.FlowLogin)
		if err := db.Commit(ctx, commit.Guard{On: commit.AttemptBudget, Key: key, Version: 0}); !errors.Is(err,
			commit.ErrFenced) {
			t.Errorf("a guard that expects no row: %v", err)
		}
		storetest.Must(t, db.Commit(ctx, commit.Guard{On: commit.AttemptBudget, Key: key, Version: 1}))
		b, _ = store.Budget(ctx, "u1", challenge.FlowLogin)
		b.OTP = append(b.OTP, 2)
		storetest.Must(t, db.Commit(ctx, challenge.Spend{Budget: b}))
		if b, _ = store.Budget(ctx, "u1", challenge.FlowLogin); b.Version != 2 || len(b.OTP) != 2 {
			t.Errorf("after two writes %+v", b)
		}
	})
}
