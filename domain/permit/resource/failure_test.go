package resource_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
)

var errDown = errors.New("the database is down")

// failing is a store of which one method fails.
type failing struct {
	resource.Store
	method string
}

func (f *failing) err(method string, err error) error {
	if f.method == method {
		return errDown
	}
	return err
}

func (f *failing) Types(ctx context.Context) ([]resource.Type, error) {
	all, err := f.Store.Types(ctx)
	return all, f.err("Types", err)
}

func (f *failing) Resources(ctx context.Context, of ...resource.Context) ([]resource.Resource, error) {
	all, err := f.Store.Resources(ctx, of...)
	return all, f.err("Resources", err)
}

func (f *failing) Roles(ctx context.Context) ([]resource.Role, error) {
	all, err := f.Store.Roles(ctx)
	return all, f.err("Roles", err)
}

func (f *failing) Grants(ctx context.Context, q resource.GrantQuery) ([]resource.Grant, error) {
	all, err := f.Store.Grants(ctx, q)
	return all, f.err("Grants", err)
}

func (f *failing) Members(ctx context.Context, q resource.MemberQuery,
	p page.Query[resource.Member]) (page.Of[resource.Member], error) {
	all, err := f.Store.Members(ctx, q, p)
	return all, f.err("Members", err)
}

func (f *failing) AddRole(ctx context.Context, r resource.Role) (int64, error) {
	id, err := f.Store.AddRole(ctx, r)
	return id, f.err("AddRole", err)
}

func (f *failing) AddType(ctx context.Context, t resource.Type) (int64, error) {
	id, err := f.Store.AddType(ctx, t)
	return id, f.err("AddType", err)
}

func (f *failing) SaveType(ctx context.Context, t resource.Type) error {
	return f.err("SaveType", f.Store.SaveType(ctx, t))
}

func (f *failing) AddResource(ctx context.Context, r resource.Resource) (int64, error) {
	id, err := f.Store.AddResource(ctx, r)
	return id, f.err("AddResource", err)
}

func (f *failing) SaveResource(ctx context.Context, r resource.Resource) error {
	return f.err("SaveResource", f.Store.SaveResource(ctx, r))
}

func (f *failing) RemoveGrant(ctx context.Context, roleID, resourceID int64, at time.Time) error {
	return f.err("RemoveGrant", f.Store.RemoveGrant(ctx, roleID, resourceID, at))
}

func (f *failing) SetGrant(ctx context.Context, roleID, resourceID int64, p resource.Permission,
	at time.Time) (int64, error) {
	id, err := f.Store.SetGrant(ctx, roleID, resourceID, p, at)
	return id, f.err("SetGrant", err)
}

func (f *failing) Lock(ctx context.Context) error { return f.err("Lock", f.Store.Lock(ctx)) }

func (f *failing) HeldByAnother(ctx context.Context, role, userID string, demo bool) (bool, error) {
	is, err := f.Store.HeldByAnother(ctx, role, userID, demo)
	return is, f.err("HeldByAnother", err)
}

// A change that needs a record which cannot be read, or a row that cannot be written, fails with the error of the
// store.
func TestStoreFails(t *testing.T) {
	r := newRegistry(t)
	ctx := t.Context()
	_, err := r.Grant(ctx, by, r.clerk.ID, r.widget.ID, resource.Allow)
	storetest.Must(t, err)
	moved := typeDraft("page")
	moved.Context = resource.API
	for _, c := range []struct {
		name    string
		methods []string
		do      func() error
	}{
		{"AddRole", []string{"AddRole"}, func() error { _, err := r.AddRole(ctx, by, "x", "X"); return err }},
		{"RemoveRole", []string{"Roles", "Members", "Grants"}, func() error {
			_, err := r.RemoveRole(ctx, by, "clerk")
			return err
		}},
		{"Give", []string{"Roles", "Members"}, func() error { _, err := r.AssignRole(ctx, by, second, "clerk"); return err }},
		{"RevokeRole", []string{"Members", "HeldByAnother"}, func() error {
			_, err := r.RevokeRole(ctx, by, operator, user.RoleAdmin)
			return err
		}},
		{"Members", []string{"Members"}, func() error {
			_, err := r.Members(ctx, resource.MemberQuery{UserID: operator}, page.Query[resource.Member]{})
			return err
		}},
		{"AddType", []string{"AddType"}, func() error { _, err := r.AddType(ctx, by, typeDraft("x")); return err }},
		{"ChangeType", []string{"Types", "Resources"}, func() error { return r.ChangeType(ctx, by, r.pages.ID, moved) }},
		{"ChangeType", []string{"SaveType"}, func() error { return r.ChangeType(ctx, by, r.pages.ID, typeDraft("p")) }},
		{"RemoveType", []string{"Types", "Resources"}, func() error { return r.RemoveType(ctx, by, r.pages.ID) }},
		{"AddResource", []string{"Resources", "Types", "AddResource"}, func() error {
			_, err := r.AddResource(ctx, by, draft("/x", r.pages.ID, 0))
			return err
		}},
		{"ChangeResource", []string{"Resources", "Types", "SaveResource"}, func() error {
			return r.ChangeResource(ctx, by, r.widget.ID, draft("/x", r.pages.ID, 0))
		}},
		{"RemoveResource", []string{"Resources", "Grants", "RemoveGrant"}, func() error {
			return r.RemoveResource(ctx, by, r.widget.ID)
		}},
		{"Grant", []string{"Roles", "Resources", "Grants", "SetGrant"}, func() error {
			_, err := r.Grant(ctx, by, r.clerk.ID, r.page.ID, resource.Allow)
			return err
		}},
		{"Revoke", []string{"Roles", "RemoveGrant"}, func() error {
			_, err := r.Revoke(ctx, by, r.clerk.ID, r.widget.ID)
			return err
		}},
	} {
		for _, method := range c.methods {
			r.store.method = method
			if err := c.do(); !errors.Is(err, errDown) {
				t.Errorf("%s without %s: %v", c.name, method, err)
			}
		}
	}
}
