package keyring_test

import (
	"testing"

	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	keyringtest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) keyring.Store { return kit.NewKeys(db) }, "keys"))
}
