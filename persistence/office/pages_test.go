package office_test

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/approval"
	"castellan/domain/page"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of a list that grows without end is found by an index that has the order
// of the list, with a position and without: the last page costs what the first
// one does.
func TestPagesOfOfficeAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		asked := func(q approval.DeployQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[approval.Place]{After: &approval.Place{ID: 9}, Limit: 10}, office.ApprovalOrder,
				office.DeployFilters(q))
			return office.Deploys.Selected(db.Conn(t.Context()).NewSelect().Model((*office.DeployRow)(nil)), p)
		}
		vpn := func(q approval.VPNQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[approval.Place]{After: &approval.Place{ID: 9}, Limit: 10}, office.ApprovalOrder,
				office.VPNFilters(q))
			return office.VPNs.Selected(db.Conn(t.Context()).NewSelect().Model((*office.VPNRow)(nil)), p)
		}
		pending := approval.Pending
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"deploys of a status":  {asked(approval.DeployQuery{Status: &pending}), "deploy_request_status"},
			"deploys of a service": {asked(approval.DeployQuery{ServiceName: new("s")}), "deploy_request_service"},
			"deploys of an original": {asked(approval.DeployQuery{OriginalServiceName: new("s")}),
				"deploy_request_original"},
			"deploys of a type": {asked(approval.DeployQuery{Type: new("t")}), "deploy_request_type"},
			"VPNs of a status":  {vpn(approval.VPNQuery{Status: &pending}), "vpn_request_status"},
			"VPNs of a name":    {vpn(approval.VPNQuery{UserName: new("n")}), "vpn_request_user_name"},
			"VPNs of a type":    {vpn(approval.VPNQuery{Type: new("t")}), "vpn_request_type"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}
