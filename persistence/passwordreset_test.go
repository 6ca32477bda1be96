package persistence

import (
	"testing"

	"castellan/domain/commit"
	"castellan/domain/password/replace"
	"castellan/domain/password/replace/replacetest"
)

func TestResetTokenStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		replacetest.TestStore(t, func(t *testing.T) (replace.Store, commit.Committer) {
			empty(t, db, "reset_token")
			return NewResetTokens(db), db
		})
	})
}
