package corporate_test

import (
	"testing"

	"castellan/domain/people/corporate"
	"castellan/domain/people/corporate/corporatetest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	corporatetest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) corporate.Store { return people.NewCorporate(db) }))
}
