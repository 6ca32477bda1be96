package persistence

import (
	"testing"

	"castellan/domain/kyc"
	"castellan/domain/kyc/kyctest"
)

func TestDecisionStore(t *testing.T) {
	suite(t, kyctest.Run, func(db *DB) kyc.Store { return NewDecisions(db) }, "account_decision")
}
