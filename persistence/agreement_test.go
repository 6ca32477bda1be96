package persistence

import (
	"testing"

	"castellan/domain/people/agreement"
	"castellan/domain/people/agreement/agreementtest"
)

func TestAgreementStore(t *testing.T) {
	suite(t, agreementtest.Run, func(db *DB) agreement.Store { return NewAgreements(db) }, "agreement_acceptance",
		"agreement")
}
