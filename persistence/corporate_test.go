package persistence

import (
	"testing"

	"castellan/domain/people/corporate"
	"castellan/domain/people/corporate/corporatetest"
)

func TestCorporateStore(t *testing.T) {
	suite(t, corporatetest.Run, func(db *DB) corporate.Store { return NewCorporate(db) }, "corporate_application",
		"corporate_user")
}
