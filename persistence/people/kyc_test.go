package people_test

import (
	"testing"

	"castellan/domain/people/kyc"
	"castellan/domain/people/kyc/kyctest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDecisionStore(t *testing.T) {
	persistencetest.RunBoth(t, kyctest.Run, func(db *persistence.DB) kyc.Store { return people.NewDecisions(db) },
		"account_decision")
}
