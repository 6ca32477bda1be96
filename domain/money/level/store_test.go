package level_test

import (
	"testing"

	"castellan/domain/money/level"
	"castellan/domain/money/level/leveltest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	leveltest.Run(t, persistencetest.Suite(func(db *persistence.DB) level.Store { return money.NewLevels(db) }))
}
