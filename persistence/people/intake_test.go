package people_test

import (
	"testing"

	"castellan/domain/people/intake"
	"castellan/domain/people/intake/intaketest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestIntakeStore(t *testing.T) {
	persistencetest.RunBoth(t, intaketest.Run,
		func(db *persistence.DB) intake.Store { return people.NewIntake(db) }, "user_import", "user_import_refusal", "users",
		"integration_claim")
}
