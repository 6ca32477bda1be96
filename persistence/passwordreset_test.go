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
			_, err := db.write.NewTruncateTable().TableExpr("reset_token").Exec(t.Context())
			must(t, err)
			return NewResetTokens(db), db
		})
	})
}
