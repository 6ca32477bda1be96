package people_test

import (
	"testing"

	"castellan/domain/people/agreement"
	"castellan/domain/people/agreement/agreementtest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestAgreementStore(t *testing.T) {
	persistencetest.RunBoth(t, agreementtest.Run,
		func(db *persistence.DB) agreement.Store { return people.NewAgreements(db) }, "agreement_acceptance",
		"agreement")
}
