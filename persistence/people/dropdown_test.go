package people_test

import (
	"testing"

	"castellan/domain/people/dropdown"
	"castellan/domain/people/dropdown/dropdowntest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDropdownStore(t *testing.T) {
	persistencetest.RunBoth(t, dropdowntest.Run,
		func(db *persistence.DB) dropdown.Store { return people.NewDropdowns(db) }, "dropdown_option")
}
