package staffrequest_test

import (
	"testing"

	"castellan/domain/office/staffrequest/staffrequesttest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	staffrequesttest.Run(t, persistencetest.Suite(func(db *persistence.DB) staffrequesttest.Stores {
		return staffrequesttest.Stores{Deploys: office.NewDeploys(db), VPNs: office.NewVPNs(db)}
	}))
}
