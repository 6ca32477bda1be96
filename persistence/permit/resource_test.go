package permit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/persistence"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

func TestResourceStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) resource.Store { return permit.NewResources(db) },
		storetest.Cases[resource.Store]{
			"RoundTrip":       resourceRoundTrip,
			"Save":            resourceSave,
			"UniqueUnderRace": resourceUniqueUnderRace,
			"Grants":          grants,
			"GrantsUnderRace": grantsUnderRace,
			"HeldByAnother":   roleHeldByAnother,
			"LockUnderRace":   resourceLockUnderRace,
			"LockWaits":       resourceLockWaits,
			"Sync":            resourceSync,
			"Members":         roleMembers,
		}, append(persistencetest.AccountTables, "role", "resource_type", "resource", "role_resource_permission",
			"role_resource_permission_log")...)
}

var now = usertest.Now

func stamp(n int) resource.Stamp {
	at := now.Add(time.Duration(n) * time.Second)
	return resource.Stamp{CreatedBy: fmt.Sprint("maker", n), CreatedAt: at, UpdatedBy: fmt.Sprint("changer", n),
		UpdatedAt: at.Add(time.Minute)}
}

func addType(t *testing.T, s resource.Store, c resource.Context, code string) int64 {
	t.Helper()
	id, err := s.AddType(t.Context(), resource.Type{Name: code, Code: code, Context: c, Status: resource.Active,
		Stamp: stamp(1)})
	storetest.Must(t, err)
	return id
}

func addResource(t *testing.T, s resource.Store, typeID int64, code string) int64 {
	t.Helper()
	id, err := s.AddResource(t.Context(), resource.Resource{Name: code, Code: code, Context: resource.API,
		TypeID: typeID, Stamp: stamp(1)})
	storetest.Must(t, err)
	return id
}

func addRole(t *testing.T, s resource.Store, code string) int64 {
	t.Helper()
	id := storetest.Value(s.AddRole(t.Context(), resource.Role{Code: code, Name: code, CreatedAt: now}))(t)
	return id
}

func resourceRoundTrip(t *testing.T, s resource.Store, _ commit.Committer) {
	ctx := t.Context()
	types := []resource.Type{
		persistencetest.Whole(t, func(r *resource.Type) { r.Code, r.Context = "GET", resource.API }),
		{Name: "x", Code: "GET", Context: resource.UI, Actions: json.RawMessage(`{"a": [1, "?", null]}`),
			Stamp: stamp(2)}, // the same code in another context
	}
	for i := range types {
		id := storetest.Value(s.AddType(ctx, types[i]))(t)
		types[i].ID = id
	}
	resources := []resource.Resource{
		persistencetest.Whole(t, func(r *resource.Resource) {
			r.Code, r.TypeID, r.Context = "GET /x?", types[0].ID, resource.API
		}),
		{Code: "GET /x?", Name: "n", TypeID: types[1].ID, Context: resource.UI, Actions: json.RawMessage(`"text"`),
			MenuItem: json.RawMessage(`0`), Stamp: stamp(4)},
	}
	for i := range resources {
		id := storetest.Value(s.AddResource(ctx, resources[i]))(t)
		resources[i].ID, resources[i].TypeCode = id, "GET"
	}
	roles := []resource.Role{persistencetest.Whole(t, func(r *resource.Role) { r.Code = "z" }),
		{Code: "a", Name: "A", CreatedAt: now}}
	for i := range roles {
		id := storetest.Value(s.AddRole(ctx, roles[i]))(t)
		roles[i].ID = id
	}
	gotTypes := storetest.Value(s.Types(ctx))(t)
	gotResources := storetest.Value(s.Resources(ctx))(t)
	gotRoles := storetest.Value(s.Roles(ctx))(t)
	storetest.Same(t, gotTypes, types)
	storetest.Same(t, gotResources, resources)
	pages := storetest.Value(s.Resources(ctx, resource.UI))(t)
	storetest.Same(t, pages, resources[1:])
	storetest.Same(t, gotRoles, roles)
}

func resourceSave(t *testing.T, s resource.Store, _ commit.Committer) {
	ctx := t.Context()
	a, b := addType(t, s, resource.API, "A"), addType(t, s, resource.API, "B")
	x, y := addResource(t, s, a, "X"), addResource(t, s, a, "Y")
	nextType := persistencetest.Whole(t, func(r *resource.Type) { r.ID, r.Code, r.Context = a, "C", resource.UI })
	storetest.Must(t, s.SaveType(ctx, nextType))
	next := persistencetest.Whole(t, func(r *resource.Resource) {
		r.ID, r.Code, r.TypeID, r.Context = x, "Z", b, resource.UI
	})
	storetest.Must(t, s.SaveResource(ctx, next))
	types := storetest.Value(s.Types(ctx))(t)
	all := storetest.Value(s.Resources(ctx))(t)
	// The creator stays.
	nextType.CreatedBy, nextType.CreatedAt = stamp(1).CreatedBy, stamp(1).CreatedAt
	next.CreatedBy, next.CreatedAt, next.TypeCode = stamp(1).CreatedBy, stamp(1).CreatedAt, "B"
	storetest.Same(t, types[0], nextType)
	storetest.Same(t, all[0], next)
	storetest.Equal(t, types[1].Code, "B", "another record changed")
	storetest.Equal(t, all[1].Code, "Y", "another record changed")

	storetest.Wants(t, s.SaveType(ctx, resource.Type{ID: b, Code: "C", Context: resource.UI}), fault.RecordAlreadyExist)
	storetest.Wants(t, s.SaveResource(ctx, resource.Resource{ID: y, Code: "Z", Context: resource.UI, TypeID: b}),
		fault.RecordAlreadyExist)
	storetest.Wants(t, s.SaveType(ctx, resource.Type{ID: b + 100, Code: "D"}), fault.RecordNotFound)
	storetest.Wants(t, s.SaveResource(ctx, resource.Resource{ID: y + 100, Code: "D", TypeID: b}), fault.RecordNotFound)
}

// racers is the number of concurrent callers in the race tests.
const racers = 16

func resourceUniqueUnderRace(t *testing.T, s resource.Store, _ commit.Committer) {
	ctx := t.Context()
	a := addType(t, s, resource.API, "A")
	for _, do := range map[string]func() error{
		"types": func() error { _, err := s.AddType(ctx, resource.Type{Code: "B", Context: resource.UI}); return err },
		"resources": func() error {
			_, err := s.AddResource(ctx, resource.Resource{Code: "X", Context: resource.UI, TypeID: a})
			return err
		},
		"roles": func() error { _, err := s.AddRole(ctx, resource.Role{Code: "r"}); return err },
	} {
		storetest.Equal(t, storetest.Race(t, racers, fault.RecordAlreadyExist, func(int) error { return do() }), 1, racers)
	}
}

// A read under the lock stays true until the commit: at most three roles are created when every caller counts before
// adding one.
func resourceLockUnderRace(t *testing.T, s resource.Store, c commit.Committer) {
	full := fault.New(fault.RecordLimitReached, "full")
	n := storetest.Race(t, racers, fault.RecordLimitReached, func(i int) error {
		return c.InTx(t.Context(), func(ctx context.Context) error {
			if err := s.Lock(ctx); err != nil {
				return err
			}
			have, err := s.Roles(ctx)
			if err != nil {
				return err
			}
			if len(have) >= 3 {
				return full
			}
			_, err = s.AddRole(ctx, resource.Role{Code: fmt.Sprint("r", i)})
			return err
		})
	})
	if have, err := s.Roles(t.Context()); err != nil || len(have) != 3 || n != 3 {
		t.Errorf("%d roles, %d acknowledged, %v", len(have), n, err)
	}
	storetest.Fails(t, s.Lock(t.Context()), "", "a lock outside of a transaction")
}

// While one transaction holds the lock, another one waits.
func resourceLockWaits(t *testing.T, s resource.Store, c commit.Committer) {
	held, second, errs := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() {
		errs <- c.InTx(t.Context(), func(ctx context.Context) error {
			if err := s.Lock(ctx); err != nil {
				close(held)
				return err
			}
			close(held)
			select {
			case <-second:
				t.Error("two transactions hold the lock")
			case <-time.After(200 * time.Millisecond): // the other one had its chance
			}
			_, err := s.AddRole(ctx, resource.Role{Code: "first"})
			return err
		})
	}()
	<-held
	errs <- c.InTx(t.Context(), func(ctx context.Context) error {
		if err := s.Lock(ctx); err != nil {
			return err
		}
		close(second)
		have, err := s.Roles(ctx)
		storetest.Equal(t, len(have), 1)
		return err
	})
	storetest.Must(t, errors.Join(<-errs, <-errs))
}

func resourceSync(t *testing.T, s resource.Store, c commit.Committer) {
	ctx := t.Context()
	table := resource.Table{{Method: "GET", Path: "/a", Name: "A"}, {Method: "PUT", Path: "/a"},
		{Method: "GET", Path: "/2fa", Name: "Socket"}}
	run := func(tb resource.Table, at time.Time) {
		t.Helper()
		storetest.Must(t, c.InTx(ctx, func(ctx context.Context) error { return resource.Sync(ctx, s, tb, at) }))
	}
	run(table, now)
	state := func() (types []resource.Type, all []resource.Resource, roles []resource.Role) {
		t.Helper()
		types, e1 := s.Types(ctx)
		all, e2 := s.Resources(ctx)
		roles, e3 := s.Roles(ctx)
		storetest.Must(t, errors.Join(e1, e2, e3))
		return types, all, roles
	}
	types, all, roles := state()
	var got string
	for _, x := range types {
		got += fmt.Sprint(x.Context, " ", x.Code, " ", x.Status, " ", x.CreatedBy, "\n")
	}
	for _, x := range all {
		got += fmt.Sprint(x.Context, " ", x.TypeCode, " ", x.Code, " ", x.Name, " ", x.Status, "\n")
	}
	for _, x := range roles {
		got += x.Code + " " + x.Name + "\n"
	}
	if want := "API GET 1 system\nAPI POST 1 system\nAPI PATCH 1 system\nAPI DELETE 1 system\nAPI PUT 1 system\n" +
		"API GET GET /a A 1\nAPI PUT PUT /a PUT /a 1\nAPI GET GET /2fa Socket 1\nadmin Administrator\nuser " +
		"User\n"; got != want {
		t.Errorf("filled with\n%s", got)
	}

	// A second run changes nothing, not even a stamp.
	run(table, now.Add(time.Hour))
	again, allAgain, rolesAgain := state()
	storetest.Same(t, again, types)
	storetest.Same(t, allAgain, all)
	storetest.Same(t, rolesAgain, roles)

	// Modified fields are restored; names and positions stay.
	bent := all[0]
	bent.Name, bent.Status, bent.TypeID, bent.ParentID = "mine", resource.Passive, types[1].ID, all[1].ID
	storetest.Must(t, s.SaveResource(ctx, bent))
	types[0].Status = resource.Passive
	storetest.Must(t, s.SaveType(ctx, types[0]))
	run(append(table, resource.Endpoint{Method: "POST", Path: "/new", Name: "New"}), now.Add(time.Hour))
	types, all, _ = state()
	if r := all[0]; r.Name != "mine" || r.Status != resource.Active || r.TypeCode != "GET" || r.ParentID != all[1].ID ||
		types[0].Status != resource.Active {
		t.Errorf("straightened to %+v of type %+v", r, types[0])
	}
	if len(all) != 4 || all[3].Code != "POST /new" {
		t.Errorf("%+v", all)
	}
	run(table, now) // a deleted line stays: another version may serve it
	if _, all, _ = state(); len(all) != 4 {
		t.Errorf("%d resources", len(all))
	}
}
