package persistence

import (
	"testing"

	"castellan/domain/commit"
	"castellan/domain/credential"
	"castellan/domain/credential/credentialtest"
)

func TestCredentialStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		credentialtest.TestStore(t, func(t *testing.T) (credential.Store, commit.Committer) {
			_, err := db.write.NewTruncateTable().TableExpr("reset_token").Exec(t.Context())
			must(t, err)
			return NewCredentials(db), db
		})
	})
}
