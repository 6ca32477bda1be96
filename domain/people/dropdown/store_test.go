package dropdown_test

import (
	"testing"

	"castellan/domain/people/dropdown"
	"castellan/domain/people/dropdown/dropdowntest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	dropdowntest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) dropdown.Store { return people.NewDropdowns(db) }, "dropdown_option"))
}
