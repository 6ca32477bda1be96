package office_test

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/office/staffrequest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfOfficeAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		asked := func(q staffrequest.DeployQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[staffrequest.Place]{After: &staffrequest.Place{ID: 9}, Limit: 10},
				office.ApprovalOrder, office.DeployFilters(q))
			return office.Deploys.Selected(db.Conn(t.Context()).NewSelect().Model((*office.DeployRow)(nil)), p)
		}
		vpn := func(q staffrequest.VPNQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[staffrequest.Place]{After: &staffrequest.Place{ID: 9}, Limit: 10},
				office.ApprovalOrder, office.VPNFilters(q))
			return office.VPNs.Selected(db.Conn(t.Context()).NewSelect().Model((*office.VPNRow)(nil)), p)
		}
		pending := staffrequest.Pending
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"deploys of a status":  {asked(staffrequest.DeployQuery{Status: &pending}), "deploy_request_status"},
			"deploys of a service": {asked(staffrequest.DeployQuery{ServiceName: new("s")}), "deploy_request_service"},
			"deploys of an original": {asked(staffrequest.DeployQuery{OriginalServiceName: new("s")}),
				"deploy_request_original"},
			"deploys of a type": {asked(staffrequest.DeployQuery{Type: new("t")}), "deploy_request_type"},
			"VPNs of a status":  {vpn(staffrequest.VPNQuery{Status: &pending}), "vpn_request_status"},
			"VPNs of a name":    {vpn(staffrequest.VPNQuery{UserName: new("n")}), "vpn_request_user_name"},
			"VPNs of a type":    {vpn(staffrequest.VPNQuery{Type: new("t")}), "vpn_request_type"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}
