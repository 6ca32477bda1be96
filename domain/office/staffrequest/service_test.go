package staffrequest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/staffrequest"
)

var errDown = errors.New("the database is down")

// rows are the requests of one kind in memory.
type rows[T, Q any] struct {
	staffrequest.Store[T, Q]
	added, row T
	err        error
}

func (r *rows[T, Q]) Add(_ context.Context, row T) (int64, error) {
	r.added = row
	return 5, r.err
}

func (r *rows[T, Q]) Change(_ context.Context, id int64, f func(T) (T, error)) error {
	if id != 5 {
		return fault.New(fault.RecordNotFound, "none")
	}
	next, err := f(r.row)
	if err == nil {
		r.row = next
	}
	return errors.Join(err, r.err)
}

type accounts struct{ user.Store }

func (accounts) Get(_ context.Context, id string) (user.User, error) {
	if id != "u2" {
		return user.User{}, fault.New(fault.RecordNotFound, "none")
	}
	return user.User{ID: id, Name: "Ada", Surname: "Byron"}, nil
}

type desk struct {
	*staffrequest.Service
	deploys *rows[staffrequest.Deploy, staffrequest.DeployQuery]
	vpns    *rows[staffrequest.VPN, staffrequest.VPNQuery]
	units   *storetest.Units
}

var (
	by  = audit.By{UserID: "u1"}
	now = time.UnixMilli(1_700_000_000_000)
)

func newDesk() *desk {
	d := &desk{deploys: &rows[staffrequest.Deploy, staffrequest.DeployQuery]{},
		vpns: &rows[staffrequest.VPN, staffrequest.VPNQuery]{}, units: &storetest.Units{}}
	d.Service = &staffrequest.Service{Deploys: d.deploys, VPNs: d.vpns, Users: accounts{}, Changes: admin.Changes{
		Commit: d.units, Now: func() time.Time { return now.Add(time.Microsecond) }}}
	return d
}

func deploy() staffrequest.Deploy {
	return staffrequest.Deploy{Request: staffrequest.Request{Status: staffrequest.Pending, Type: "t", DeciderID: "x"},
		ServiceName: "s", OriginalServiceName: "o", BuildNumber: "b", Minutes: 10}
}

// A request belongs to its requestor, and its decider is the user of the last update. Both are audited.
func TestDeployRequests(t *testing.T) {
	d := newDesk()
	got, err := d.AddDeploy(t.Context(), by, deploy())
	want := deploy()
	want.ID, want.RequestorID, want.DeciderID, want.CreatedAt, want.UpdatedAt = 5, "u1", "", now, now
	storetest.Must(t, err)
	storetest.Same(t, got, want)
	stored := want
	stored.ID = 0
	storetest.Same(t, d.deploys.added, stored)

	d.deploys.row = want
	later := now.Add(time.Hour)
	d.Changes.Now = func() time.Time { return later }
	got, err = d.ChangeDeploy(t.Context(), audit.By{UserID: "u3"}, 5, staffrequest.DeployChange{
		Status: new(staffrequest.Approved), Minutes: new(int64(20))})
	want.Status, want.Minutes, want.DeciderID, want.UpdatedAt = staffrequest.Approved, 20, "u3", later
	storetest.Must(t, err)
	storetest.Same(t, got, want)
	storetest.Same(t, d.deploys.row, want)
	storetest.Same(t, d.units.Audit(), []string{"u1 DEPLOY_REQUEST_ADD u1 5 PENDING",
		"u3 DEPLOY_REQUEST_UPDATE u1 5 PENDING -> APPROVED, Minutes"})
}

// A VPN request has the name of its user.
func TestVPNRequests(t *testing.T) {
	d := newDesk()
	v := staffrequest.VPN{Request: staffrequest.Request{Status: staffrequest.Pending, Type: "full"}, UserName: "ada"}
	got, err := d.AddVPN(t.Context(), by, "u2", v)
	want := staffrequest.VPN{Request: staffrequest.Request{ID: 5, Status: staffrequest.Pending, Type: "FULL",
		RequestorID: "u2", CreatedAt: now, UpdatedAt: now}, UserName: "ada", Name: "Ada", Surname: "Byron"}
	storetest.Must(t, err)
	storetest.Same(t, got, want)

	d.vpns.row = want
	got, err = d.ChangeVPN(t.Context(), by, 5, staffrequest.VPNChange{Status: new(staffrequest.Rejected)})
	want.Status, want.DeciderID = staffrequest.Rejected, "u1"
	storetest.Must(t, err)
	storetest.Same(t, got, want)
	storetest.Same(t, d.units.Audit(), []string{"u1 VPN_REQUEST_ADD u2 5 PENDING",
		"u1 VPN_REQUEST_UPDATE u2 5 PENDING -> REJECTED"})
	_, err = d.AddVPN(t.Context(), by, "unknown", v)
	storetest.Wants(t, err, fault.RecordNotFound)
}

// Refused and failed changes are not audited.
func TestRefusedRequests(t *testing.T) {
	d := newDesk()
	bad := deploy()
	bad.Minutes = 0
	_, err := d.AddDeploy(t.Context(), by, bad)
	storetest.WantsFields(t, err, "duration_minutes")
	_, err = d.AddVPN(t.Context(), by, "u2", staffrequest.VPN{})
	storetest.WantsFields(t, err, "user_name type status")
	_, err = d.ChangeDeploy(t.Context(), by, 5, staffrequest.DeployChange{})
	storetest.WantsFields(t, err, "service_name original_service_name build_number status duration_minutes comment")
	_, err = d.ChangeVPN(t.Context(), by, 5, staffrequest.VPNChange{})
	storetest.WantsFields(t, err, "user_name status comment")
	_, err = d.ChangeDeploy(t.Context(), by, 6, staffrequest.DeployChange{Comment: new("c")})
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = d.ChangeVPN(t.Context(), by, 6, staffrequest.VPNChange{Comment: new("c")})
	storetest.Wants(t, err, fault.RecordNotFound)
	// The stored request would not be valid with the change.
	_, err = d.ChangeDeploy(t.Context(), by, 5, staffrequest.DeployChange{Comment: new("c")})
	storetest.Wants(t, err, fault.InvalidField)
	_, err = d.ChangeVPN(t.Context(), by, 5, staffrequest.VPNChange{Comment: new("c")})
	storetest.Wants(t, err, fault.InvalidField)
	d.deploys.err, d.vpns.err = errDown, errDown
	if _, err := d.AddDeploy(t.Context(), by, deploy()); !errors.Is(err, errDown) {
		t.Error(err)
	}
	v := staffrequest.VPN{Request: staffrequest.Request{Status: staffrequest.Pending, Type: "F"}, UserName: "a"}
	if _, err := d.AddVPN(t.Context(), by, "u2", v); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if rows := d.units.Audit(); rows != nil {
		t.Error(rows)
	}
}

// Texts and durations are bounded.
func TestBoundsOfRequests(t *testing.T) {
	long := strings.Repeat("é", 200)
	for name, c := range map[string]struct {
		change func(*staffrequest.Deploy)
		fields string
	}{
		"longest texts": {func(d *staffrequest.Deploy) {
			d.ServiceName, d.OriginalServiceName, d.BuildNumber, d.Type = long, long, long, long
			d.Comment = strings.Repeat("é", 2000)
		}, ""},
		"long texts": {func(d *staffrequest.Deploy) {
			d.ServiceName, d.OriginalServiceName, d.BuildNumber, d.Type = long+"x", long+"x", long+"x", long+"x"
			d.Comment = strings.Repeat("é", 2001)
		}, "service_name original_service_name build_number type comment"},
		"blank text": {func(d *staffrequest.Deploy) { d.ServiceName = " " }, "service_name"},
		"shortest":   {func(d *staffrequest.Deploy) { d.Minutes = 1 }, ""},
		"a year":     {func(d *staffrequest.Deploy) { d.Minutes = 525_600 }, ""},
		"too long":   {func(d *staffrequest.Deploy) { d.Minutes = 525_601 }, "duration_minutes"},
		"approved":   {func(d *staffrequest.Deploy) { d.Status = staffrequest.Approved }, ""},
		"rejected":   {func(d *staffrequest.Deploy) { d.Status = staffrequest.Rejected }, ""},
		"unknown":    {func(d *staffrequest.Deploy) { d.Status = "OPEN" }, "status"},
	} {
		d := deploy()
		c.change(&d)
		if storetest.WantsFields(t, d.Check(), c.fields); t.Failed() {
			t.Fatal(name)
		}
	}
	v := staffrequest.VPN{Request: staffrequest.Request{Status: staffrequest.Pending, Type: "F"}, UserName: "a"}
	changed, err := staffrequest.VPNChange{UserName: new("b"), Comment: new("c")}.Apply(v)
	if err != nil || changed.UserName != "b" || changed.Comment != "c" || changed.Type != "F" {
		t.Errorf("%+v, %v", changed, err)
	}
	c := staffrequest.DeployChange{ServiceName: new("1"), OriginalServiceName: new("2"), BuildNumber: new("3"),
		Comment: new("4")}
	if d, err := c.Apply(deploy()); err != nil || d.ServiceName != "1" || d.OriginalServiceName != "2" ||
		d.BuildNumber != "3" || d.Comment != "4" || d.Minutes != 10 {
		t.Errorf("%+v, %v", d, err)
	}
}
