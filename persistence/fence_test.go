package persistence_test

import (
	"errors"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
)

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
		if err := step(); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("the loser of the race got %v, want ErrFenced", err)
		}
	})
}
