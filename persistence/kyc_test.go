package persistence

import (
	"testing"

	"castellan/domain/people/kyc"
	"castellan/domain/people/kyc/kyctest"
)

func TestDecisionStore(t *testing.T) {
	suite(t, kyctest.Run, func(db *DB) kyc.Store { return NewDecisions(db) }, "account_decision")
}
