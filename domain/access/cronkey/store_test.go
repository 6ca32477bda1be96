package cronkey_test

import (
	"testing"

	"castellan/domain/access/cronkey"
	"castellan/domain/access/cronkey/cronkeytest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	cronkeytest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) cronkey.Store { return access.NewCronKeys(db) }))
}
