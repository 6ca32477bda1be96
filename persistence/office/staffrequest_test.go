package office_test

import (
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/staffrequest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestStaffRequestStores(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) staffStores {
		return staffStores{Deploys: office.NewDeploys(db), VPNs: office.NewVPNs(db)}
	},
		storetest.Cases[staffStores]{
			"Whole":          wholeStaffRequests,
			"ChangesInOrder": staffChangesInOrder,
		}, "deploy_request", "vpn_request")
}

// staffStores are the stores of both kinds.
type staffStores struct {
	Deploys staffrequest.Deploys
	VPNs    staffrequest.VPNs
}

// The records of both kinds are read as they were written and changed.
func wholeStaffRequests(t *testing.T, s staffStores, _ commit.Committer) {
	ctx := t.Context()
	d := persistencetest.Whole(t, func(d *staffrequest.Deploy) { d.Status = staffrequest.Approved })
	v := persistencetest.Whole(t, func(v *staffrequest.VPN) { v.Status = staffrequest.Pending })
	d.ID = storetest.Value(s.Deploys.Add(ctx, d))(t)
	v.ID = storetest.Value(s.VPNs.Add(ctx, v))(t)
	pagetest.Check(t, s.Deploys.List, staffrequest.DeployQuery{}, []staffrequest.Deploy{d})
	later := v
	later.ID = storetest.Value(s.VPNs.Add(ctx, later))(t)
	pagetest.Check(t, s.VPNs.List, staffrequest.VPNQuery{}, []staffrequest.VPN{later, v})
	// A change keeps who asked for what.
	storetest.Must(t, s.Deploys.Change(ctx, d.ID, func(sent staffrequest.Deploy) (staffrequest.Deploy, error) {
		sent.ServiceName, sent.Type, sent.RequestorID, sent.CreatedAt = "next", "other", "other", d.UpdatedAt
		sent.UpdatedAt = d.UpdatedAt
		return sent, nil
	}))
	d.ServiceName = "next"
	pagetest.Check(t, s.Deploys.List, staffrequest.DeployQuery{ID: &d.ID}, []staffrequest.Deploy{d})
	storetest.Must(t, s.VPNs.Change(ctx, v.ID, func(sent staffrequest.VPN) (staffrequest.VPN, error) {
		sent.UserName, sent.Name, sent.Surname, sent.Type, sent.RequestorID = "next", "other", "other", "other", "other"
		sent.UpdatedAt = v.UpdatedAt
		return sent, nil
	}))
	v.UserName = "next"
	pagetest.Check(t, s.VPNs.List, staffrequest.VPNQuery{ID: &v.ID}, []staffrequest.VPN{v})
}

// No concurrent change is lost.
func staffChangesInOrder(t *testing.T, s staffStores, _ commit.Committer) {
	ctx := t.Context()
	id := storetest.Value(s.Deploys.Add(ctx, staffrequest.Deploy{}))(t)
	storetest.Race(t, 8, "", func(int) error {
		return s.Deploys.Change(ctx, id, func(d staffrequest.Deploy) (staffrequest.Deploy, error) {
			d.Minutes++
			return d, nil
		})
	})
	got := storetest.Value(s.Deploys.List(ctx, staffrequest.DeployQuery{ID: &id}, page.Query[staffrequest.Place]{}))(t)
	storetest.Equal(t, got.Records[0].Minutes, 8)
}
