package office_test

import (
	"testing"

	"castellan/domain/approval/approvaltest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestApprovalStores(t *testing.T) {
	persistencetest.RunBoth(t, approvaltest.Run, func(db *persistence.DB) approvaltest.Stores {
		return approvaltest.Stores{Deploys: office.NewDeploys(db), VPNs: office.NewVPNs(db)}
	}, "deploy_request", "vpn_request")
}
