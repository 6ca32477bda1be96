package approval_test

import (
	"testing"

	"castellan/domain/approval/approvaltest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	approvaltest.Run(t, persistencetest.Suite(func(db *persistence.DB) approvaltest.Stores {
		return approvaltest.Stores{Deploys: office.NewDeploys(db), VPNs: office.NewVPNs(db)}
	}))
}
