package people_test

import (
	"testing"

	"castellan/domain/people/corporate"
	"castellan/domain/people/corporate/corporatetest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestCorporateStore(t *testing.T) {
	persistencetest.RunBoth(t, corporatetest.Run,
		func(db *persistence.DB) corporate.Store { return people.NewCorporate(db) }, "corporate_application",
		"corporate_user")
}
