package persistence

import (
	"testing"

	"castellan/domain/office/staffrequest/staffrequesttest"
)

func TestApprovalStores(t *testing.T) {
	suite(t, staffrequesttest.Run, func(db *DB) staffrequesttest.Stores {
		return staffrequesttest.Stores{Deploys: NewDeploys(db), VPNs: NewVPNs(db)}
	}, "deploy_request", "vpn_request")
}
