package resource_test

import (
	"context"
	"errors"

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

func (f *failing) Lock(ctx context.Context) error { return f.err("Lock", f.Store.Lock(ctx)) }
