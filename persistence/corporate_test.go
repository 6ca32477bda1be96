package persistence

import (
	"testing"

	"castellan/domain/corporate"
	"castellan/domain/corporate/corporatetest"
)

func TestCorporateStore(t *testing.T) {
	suite(t, corporatetest.Run, func(db *DB) corporate.Store { return NewCorporate(db) }, "corporate_application",
		"corporate_user")
}
