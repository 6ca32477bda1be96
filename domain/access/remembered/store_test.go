package remembered_test

import (
	"testing"

	"castellan/domain/access/remembered"
	"castellan/domain/access/remembered/rememberedtest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	rememberedtest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) remembered.Store { return access.NewRemembered(db) }))
}
