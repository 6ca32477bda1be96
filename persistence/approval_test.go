package persistence

import (
	"testing"

	"castellan/domain/approval/approvaltest"
)

func TestApprovalStores(t *testing.T) {
	suite(t, approvaltest.Run, func(db *DB) approvaltest.Stores {
		return approvaltest.Stores{Deploys: NewDeploys(db), VPNs: NewVPNs(db)}
	}, "deploy_request", "vpn_request")
}
