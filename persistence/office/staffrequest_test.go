package office_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
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
			"Deploys":        deployRequests,
			"VPNs":           vpnRequests,
			"ChangesInOrder": staffChangesInOrder,
		}, "deploy_request", "vpn_request")
}

// staffStores are the stores of both kinds.
type staffStores struct {
	Deploys staffrequest.Deploys
	VPNs    staffrequest.VPNs
}

var staffAt = time.UnixMilli(1_700_000_000_000).UTC()

func staffRequest(n int) staffrequest.Request {
	return staffrequest.Request{Status: staffrequest.Pending, Comment: fmt.Sprint("comment ", n), Type: "A",
		RequestorID: "u1", CreatedAt: staffAt, UpdatedAt: staffAt.Add(time.Minute)}
}

func deployRequest(n int) staffrequest.Deploy {
	return staffrequest.Deploy{Request: staffRequest(n), ServiceName: fmt.Sprint("s", n%2), OriginalServiceName: "o",
		BuildNumber: "1.2", Minutes: int64(n)}
}

func deployRequests(t *testing.T, s staffStores, _ commit.Committer) {
	ctx := t.Context()
	var all []staffrequest.Deploy // newest first
	for n := range 5 {
		d := deployRequest(n)
		if n == 3 {
			d = persistencetest.Whole(t, func(d *staffrequest.Deploy) {
				d.Status, d.ServiceName, d.OriginalServiceName, d.Type = staffrequest.Approved, "s1", "p", "b"
			})
		}
		id, err := s.Deploys.Add(ctx, d)
		storetest.Must(t, err)
		d.ID = id
		all = append([]staffrequest.Deploy{d}, all...)
	}
	rejected := staffrequest.Rejected
	for _, c := range []struct {
		q    staffrequest.DeployQuery
		want []staffrequest.Deploy
	}{
		{staffrequest.DeployQuery{}, all},
		{staffrequest.DeployQuery{ID: &all[2].ID}, all[2:3]},
		{staffrequest.DeployQuery{Status: &all[1].Status}, all[1:2]},
		{staffrequest.DeployQuery{Status: &rejected}, []staffrequest.Deploy{}},
		{staffrequest.DeployQuery{ServiceName: new("s1")}, []staffrequest.Deploy{all[1], all[3]}},
		{staffrequest.DeployQuery{OriginalServiceName: new("p"), Type: new("b")}, all[1:2]},
		{staffrequest.DeployQuery{Type: new("B")}, []staffrequest.Deploy{}},
	} {
		pagetest.CheckBoth(t, s.Deploys.List, c.q, c.want)
	}

	next := persistencetest.Whole(t, func(d *staffrequest.Deploy) {
		d.ID, d.Type, d.RequestorID, d.CreatedAt = all[4].ID, all[4].Type, all[4].RequestorID, all[4].CreatedAt
	})
	storetest.Must(t, s.Deploys.Change(ctx, next.ID, func(d staffrequest.Deploy) (staffrequest.Deploy, error) {
		storetest.Same(t, d.ServiceName, "s0")
		return next, nil
	}))
	storetest.Wants(t, s.Deploys.Change(ctx, next.ID, func(d staffrequest.Deploy) (staffrequest.Deploy, error) {
		return deployRequest(7), fault.Invalid("type", "no")
	}), fault.InvalidField)
	pagetest.Check(t, s.Deploys.List, staffrequest.DeployQuery{ID: &next.ID}, []staffrequest.Deploy{next})
	storetest.Wants(t, s.Deploys.Change(ctx, 1<<40, nil), fault.RecordNotFound)
}

func vpnRequests(t *testing.T, s staffStores, _ commit.Committer) {
	ctx := t.Context()
	var all []staffrequest.VPN
	for n := range 3 {
		v := persistencetest.Whole(t, func(v *staffrequest.VPN) {
			v.Status, v.Type, v.UserName = staffrequest.Pending, "A", fmt.Sprint("vpn", n)
		})
		id, err := s.VPNs.Add(ctx, v)
		storetest.Must(t, err)
		v.ID = id
		all = append([]staffrequest.VPN{v}, all...)
	}
	pending := staffrequest.Pending
	pagetest.CheckBoth(t, s.VPNs.List, staffrequest.VPNQuery{Status: &pending, Type: new("A")}, all)
	pagetest.Check(t, s.VPNs.List, staffrequest.VPNQuery{UserName: new("vpn1")}, all[1:2])
	pagetest.Check(t, s.VPNs.List, staffrequest.VPNQuery{ID: &all[0].ID}, all[:1])
	storetest.Wants(t, s.VPNs.Change(ctx, 1<<40, nil), fault.RecordNotFound)
}

// No concurrent change is lost.
func staffChangesInOrder(t *testing.T, s staffStores, _ commit.Committer) {
	ctx := t.Context()
	id, err := s.Deploys.Add(ctx, deployRequest(0))
	storetest.Must(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Deploys.Change(ctx, id, func(d staffrequest.Deploy) (staffrequest.Deploy, error) {
				d.Minutes++
				return d, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := s.Deploys.List(ctx, staffrequest.DeployQuery{ID: &id}, page.Query[staffrequest.Place]{})
	storetest.Must(t, err)
	if n := got.Records[0].Minutes; n != 8 {
		t.Errorf("%d of 8 changes are there", n)
	}
}
