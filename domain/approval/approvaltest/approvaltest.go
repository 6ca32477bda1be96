// Package approvaltest is the contract of approval.Store as tests.
package approvaltest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/approval"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/page"
	"castellan/domain/page/pagetest"
	"castellan/domain/storetest"
)

// Stores are those of both sorts.
type Stores struct {
	Deploys approval.Deploys
	VPNs    approval.VPNs
}

// Run checks implementations of approval.Store.
func Run(t *testing.T, open storetest.Open[Stores]) {
	storetest.Run(t, open, storetest.Cases[Stores]{
		"Deploys":        deploys,
		"VPNs":           vpns,
		"ChangesInOrder": changesInOrder,
	})
}

var at = time.UnixMilli(1_700_000_000_000).UTC()

func asked(n int) approval.Request {
	return approval.Request{Status: approval.Pending, Comment: fmt.Sprint("comment ", n), Type: "A",
		RequestorID: "u1", CreatedAt: at, UpdatedAt: at.Add(time.Minute)}
}

func deploy(n int) approval.Deploy {
	return approval.Deploy{Request: asked(n), ServiceName: fmt.Sprint("s", n%2), OriginalServiceName: "o",
		BuildNumber: "1.2", Minutes: int64(n)}
}

func deploys(t *testing.T, s Stores, _ commit.Committer) {
	ctx := t.Context()
	var all []approval.Deploy // newest first
	for n := range 5 {
		d := deploy(n)
		if n == 3 {
			d.Status, d.Type, d.OriginalServiceName, d.DeciderID = approval.Approved, "b", "p", "u2"
		}
		id, err := s.Deploys.Add(ctx, d)
		storetest.Must(t, err)
		d.ID = id
		all = append([]approval.Deploy{d}, all...)
	}
	rejected := approval.Rejected
	for _, c := range []struct {
		q    approval.DeployQuery
		want []approval.Deploy
	}{
		{approval.DeployQuery{}, all},
		{approval.DeployQuery{ID: &all[2].ID}, all[2:3]},
		{approval.DeployQuery{Status: &all[1].Status}, all[1:2]},
		{approval.DeployQuery{Status: &rejected}, []approval.Deploy{}},
		{approval.DeployQuery{ServiceName: new("s1")}, []approval.Deploy{all[1], all[3]}},
		{approval.DeployQuery{OriginalServiceName: new("p"), Type: new("b")}, all[1:2]},
		{approval.DeployQuery{Type: new("B")}, []approval.Deploy{}},
	} {
		pagetest.Check(t, s.Deploys.List, c.q, c.want)
	}

	next := all[4]
	next.ServiceName, next.Status, next.DeciderID, next.UpdatedAt = "s9", approval.Rejected, "u3", at.Add(time.Hour)
	storetest.Must(t, s.Deploys.Change(ctx, next.ID, func(d approval.Deploy) (approval.Deploy, error) {
		storetest.Same(t, d.ServiceName, "s0")
		return next, nil
	}))
	storetest.Wants(t, s.Deploys.Change(ctx, next.ID, func(d approval.Deploy) (approval.Deploy, error) {
		return deploy(7), fault.Invalid("type", "no")
	}), fault.InvalidField)
	pagetest.Check(t, s.Deploys.List, approval.DeployQuery{ID: &next.ID}, []approval.Deploy{next})
	storetest.Wants(t, s.Deploys.Change(ctx, 1<<40, nil), fault.RecordNotFound)
}

func vpns(t *testing.T, s Stores, _ commit.Committer) {
	ctx := t.Context()
	var all []approval.VPN
	for n := range 3 {
		v := approval.VPN{Request: asked(n), UserName: fmt.Sprint("vpn", n), Name: "Ayşe", Surname: "Öz"}
		id, err := s.VPNs.Add(ctx, v)
		storetest.Must(t, err)
		v.ID = id
		all = append([]approval.VPN{v}, all...)
	}
	pending := approval.Pending
	pagetest.Check(t, s.VPNs.List, approval.VPNQuery{Status: &pending, Type: new("A")}, all)
	pagetest.Check(t, s.VPNs.List, approval.VPNQuery{UserName: new("vpn1")}, all[1:2])
	pagetest.Check(t, s.VPNs.List, approval.VPNQuery{ID: &all[0].ID}, all[:1])
	storetest.Wants(t, s.VPNs.Change(ctx, 1<<40, nil), fault.RecordNotFound)
}

// No change is lost where several meet.
func changesInOrder(t *testing.T, s Stores, _ commit.Committer) {
	ctx := t.Context()
	id, err := s.Deploys.Add(ctx, deploy(0))
	storetest.Must(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Deploys.Change(ctx, id, func(d approval.Deploy) (approval.Deploy, error) {
				d.Minutes++
				return d, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := s.Deploys.List(ctx, approval.DeployQuery{ID: &id}, page.Query[approval.Place]{})
	storetest.Must(t, err)
	if n := got.Records[0].Minutes; n != 8 {
		t.Errorf("%d of 8 changes are there", n)
	}
}
