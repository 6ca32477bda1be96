package people_test

import (
	"testing"

	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		people.NewAgreements(db), people.NewBootstrap(db), people.NewCorporate(db), people.NewDocuments(db),
		people.NewDropdowns(db),
		people.NewIdentities(db), people.NewInbox(db), people.NewIntake(db), people.NewDecisions(db),
		people.NewStandings(db))
}
