package persistence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// OnCommit is told of every transaction once, with its units and statements.
func TestCommitsAreObserved(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		var mu sync.Mutex
		var units, statements int
		var took time.Duration
		db.OnCommit(func(c persistence.Committed) {
			mu.Lock()
			defer mu.Unlock()
			units, statements, took = units+c.Units, statements+c.Statements, took+c.Took
		})
		before := db.Units()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				storetest.Must(t, db.Commit(t.Context(), challenge.Insert{Challenge: persistencetest.Challenge(fmt.Sprint("o",
					i))}))
			})
		}
		wg.Wait()
		stale := persistencetest.Challenge("o1")
		stale.Version = 9
		storetest.Is(t, db.Commit(t.Context(), challenge.Update{Challenge: stale}), commit.ErrFenced)
		mu.Lock()
		defer mu.Unlock()
		if units != 20 || int64(units) != db.Units()-before || statements < 1 || statements > 40 || took <= 0 {
			t.Errorf("%d units in %d statements, %v", units, statements, took)
		}
	})
}

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

func TestInTxJoinsAndRollsBack(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), factor.NewChallenges(db)
		boom := errors.New("boom")
		err := db.InTx(ctx, func(ctx context.Context) error {
			storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge("a")},
				audit.Record{Action: "X"}))
			storetest.Value(store.Load(ctx, "a"))(t)
			return boom
		})
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		storetest.Wants(t, storetest.Err(store.Load(ctx, "a")), fault.ChallengeNotFound, "after the rollback")
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			return db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge("a")}, audit.Record{Action: "X"})
		}))
		storetest.Equal(t, storetest.Value(kit.NewAudit(db).Verify(ctx, []byte("audit key of the test")))(t), 1, "audit")
	})
}

// The loser of a race learns that it was fenced, although its inserts would also be
// duplicates of the winner's rows.
func TestFenceComesBeforeDuplicate(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		c := persistencetest.Challenge("c1")
		storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: c}))
		c.Version, c.State = 1, challenge.Done
		step := func() error {
			return db.Commit(ctx, challenge.Update{Challenge: c},
				challenge.Record{Outcome: challenge.Outcome{ChallengeID: "c1", Sealed: []byte("x")}})
		}
		storetest.Must(t, step())
		storetest.Is(t, step(), commit.ErrFenced)
	})
}
