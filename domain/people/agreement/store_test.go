package agreement_test

import (
	"testing"

	"castellan/domain/people/agreement"
	"castellan/domain/people/agreement/agreementtest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	agreementtest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) agreement.Store { return people.NewAgreements(db) }))
}
