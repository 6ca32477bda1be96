package persistence

import (
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/money/level"
	"castellan/domain/money/level/leveltest"
)

func TestLevelStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		leveltest.Run(t, func(t *testing.T) (level.Store, commit.Committer) {
			exec(t, db, "DELETE FROM user_level WHERE id = 5") // the one that the suite adds
			return NewLevels(db), db
		})
	})
}
