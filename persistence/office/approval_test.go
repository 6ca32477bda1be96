package office_test

import (
	"testing"

	"castellan/domain/office/staffrequest/staffrequesttest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestApprovalStores(t *testing.T) {
	persistencetest.RunBoth(t, staffrequesttest.Run, func(db *persistence.DB) staffrequesttest.Stores {
		return staffrequesttest.Stores{Deploys: office.NewDeploys(db), VPNs: office.NewVPNs(db)}
	}, "deploy_request", "vpn_request")
}
