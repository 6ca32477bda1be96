package office_test

import (
	"testing"

	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		office.NewAnnouncements(db), office.NewDeploys(db), office.NewVPNs(db), office.NewContracts(db),
		office.NewFourEyes(db))
}
