package money_test

import (
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/money/level"
	"castellan/domain/money/level/leveltest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestLevelStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		leveltest.Run(t, func(t *testing.T) (level.Store, commit.Committer) {
			persistencetest.Exec(t, db, "DELETE FROM user_level WHERE id = 5") // the one that the suite adds
			return money.NewLevels(db), db
		})
	})
}
