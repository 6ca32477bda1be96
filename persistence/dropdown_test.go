package persistence

import (
	"testing"

	"castellan/domain/people/dropdown"
	"castellan/domain/people/dropdown/dropdowntest"
)

func TestDropdownStore(t *testing.T) {
	suite(t, dropdowntest.Run, func(db *DB) dropdown.Store { return NewDropdowns(db) }, "dropdown_option")
}
