package persistence

import (
	"testing"

	"castellan/domain/access/password/replace"
	"castellan/domain/access/password/replace/replacetest"
)

func TestResetTokenStore(t *testing.T) {
	suite(t, replacetest.Run, func(db *DB) replace.Store { return NewResetTokens(db) }, "reset_token")
}
