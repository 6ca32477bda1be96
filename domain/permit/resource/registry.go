package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// maxChars bounds codes and names. Codes are indexed.
const maxChars = 500

// TypeDraft is an administrator's input for a type.
type TypeDraft struct {
	Name, Code string
	Status     Status
	Context    Context
	Actions    *json.RawMessage // nil: unchanged
}

// Draft is an administrator's input for a resource.
type Draft struct {
	Code, Name string
	Status     Status
	TypeID     int64
	Context    Context
	Parent     *int64           // nil: unchanged; 0: none
	Actions    *json.RawMessage // nil: unchanged
	MenuItem   *json.RawMessage // likewise
}

// checkText checks a code or a name.
func checkText(ps *fault.Problems, field, value string) {
	switch {
	case strings.TrimSpace(value) == "":
		ps.Require(false, field, "must not be blank")
	case utf8.RuneCountInString(value) > maxChars:
		ps.Require(false, field, "is longer than %d characters", maxChars)
	default:
		ps.Require(legible.Valid(value), field, "must not contain control characters")
	}
}

func check(code, name string, s Status, c Context) error {
	var ps fault.Problems
	checkText(&ps, "code", code)
	checkText(&ps, "name", name)
	ps.Require(s == Active || s == Passive, "status", "must be 1 (active) or 0 (passive)")
	ps.Require(c == UI || c == API, "resourceContext", "must be one of UI, API")
	return fault.All(ps)
}

// AddType adds a resource type and returns its id. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddType(ctx context.Context, by audit.By, d TypeDraft) (id int64, err error) {
	if err := check(d.Code, d.Name, d.Status, d.Context); err != nil {
		return 0, err
	}
	err = a.Changes.Do(ctx, by, "RESOURCE_TYPE_ADD", func(ctx context.Context) (admin.Done, error) {
		t := d.applyTo(Type{Stamp: a.stamp(by)})
		id, err = a.Store.AddType(ctx, t)
		return admin.Done{Target: number(id), Detail: admin.Values(t)}, err
	})
	return id, err
}

// ChangeType changes a resource type. INVALID_FIELD, RECORD_NOT_FOUND, RECORD_ALREADY_EXIST; INVALID_STATE for
// another context while it has resources, and for a type of the endpoint table that would lose its code or its active
// status.
func (a *Admin) ChangeType(ctx context.Context, by audit.By, id int64, d TypeDraft) error {
	if err := check(d.Code, d.Name, d.Status, d.Context); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "RESOURCE_TYPE_UPDATE", func(ctx context.Context) (admin.Done, error) {
		old, err := a.typeOf(ctx, id)
		if err != nil {
			return admin.Done{}, err
		}
		next := d.applyTo(old)
		if a.Table.hasType(old.Context, old.Code) &&
			(next.Code != old.Code || next.Context != old.Context || next.Status != Active) {
			return admin.Done{}, state("the type belongs to the endpoint table: only its name and actions can change")
		}
		if next.Context != old.Context {
			if err := a.unused(ctx, id); err != nil {
				return admin.Done{}, err
			}
		}
		next.UpdatedBy, next.UpdatedAt = by.UserID, a.Changes.Now()
		return admin.Done{Target: number(id), Detail: admin.Difference(old, next)}, a.Store.SaveType(ctx, next)
	})
}

// RemoveType deletes a resource type. RECORD_NOT_FOUND; INVALID_STATE while it
// has resources (D-RES-03), and for a type of the endpoint table.
func (a *Admin) RemoveType(ctx context.Context, by audit.By, id int64) error {
	return a.Changes.Do(ctx, by, "RESOURCE_TYPE_DELETE", func(ctx context.Context) (admin.Done, error) {
		t, err := a.typeOf(ctx, id)
		if err != nil {
			return admin.Done{}, err
		}
		if a.Table.hasType(t.Context, t.Code) {
			return admin.Done{}, state("the type belongs to the endpoint table")
		}
		if err := a.unused(ctx, id); err != nil {
			return admin.Done{}, err
		}
		return admin.Done{Target: number(id), Detail: admin.Values(t)},
			a.Store.RemoveType(ctx, id)
	})
}

func (d TypeDraft) applyTo(t Type) Type {
	t.Name, t.Code, t.Status, t.Context = d.Name, d.Code, d.Status, d.Context
	set(&t.Actions, d.Actions)
	return t
}

// set replaces a value of any JSON; null clears it.
func set(v *json.RawMessage, by *json.RawMessage) {
	switch {
	case by == nil:
	case string(bytes.TrimSpace(*by)) == "null":
		*v = nil
	default:
		*v = *by
	}
}

func (a *Admin) typeOf(ctx context.Context, id int64) (Type, error) {
	all, err := a.Store.Types(ctx)
	return one("resource type", func(t Type) bool { return t.ID == id }, all, err)
}

func (a *Admin) unused(ctx context.Context, typeID int64) error {
	all, err := a.Store.Resources(ctx)
	if err != nil {
		return err
	}
	if r, used := first(all, func(r Resource) bool { return r.TypeID == typeID }); used {
		return state("the type has resources, such as %q", r.Code)
	}
	return nil
}

// AddResource adds a resource and returns its id. INVALID_FIELD,
// RECORD_ALREADY_EXIST.
func (a *Admin) AddResource(ctx context.Context, by audit.By, d Draft) (id int64, err error) {
	if err := check(d.Code, d.Name, d.Status, d.Context); err != nil {
		return 0, err
	}
	err = a.Changes.Do(ctx, by, "RESOURCE_ADD", func(ctx context.Context) (admin.Done, error) {
		all, err := a.Store.Resources(ctx)
		if err != nil {
			return admin.Done{}, err
		}
		r := d.applyTo(Resource{Stamp: a.stamp(by)})
		if err := a.checkAgainst(ctx, r, all); err != nil {
			return admin.Done{}, err
		}
		id, err = a.Store.AddResource(ctx, r)
		return admin.Done{Target: number(id), Detail: admin.Values(r)}, err
	})
	return id, err
}

// ChangeResource changes a resource. INVALID_FIELD, RECORD_NOT_FOUND, RECORD_ALREADY_EXIST; INVALID_STATE for another
// context while resources are nested in it, and for a resource of the endpoint table that would lose its code, its
// type or its active status.
func (a *Admin) ChangeResource(ctx context.Context, by audit.By, id int64, d Draft) error {
	if err := check(d.Code, d.Name, d.Status, d.Context); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "RESOURCE_UPDATE", func(ctx context.Context) (admin.Done, error) {
		old, all, err := a.resource(ctx, id)
		if err != nil {
			return admin.Done{}, err
		}
		next := d.applyTo(old)
		if _, ours := a.Table.find(old.Context, old.Code); ours &&
			(next.Code != old.Code || next.Context != old.Context || next.TypeID != old.TypeID ||
				next.Status != Active) {
			return admin.Done{}, state("%s belongs to the endpoint table: only its name, place and properties can "+
				"change", old.Code)
		}
		if err := a.checkAgainst(ctx, next, all); err != nil {
			return admin.Done{}, err
		}
		if child, nested := first(all, func(r Resource) bool { return r.ParentID == id }); nested &&
			next.Context != old.Context {
			return admin.Done{}, state("%q is nested in it", child.Code)
		}
		next.UpdatedBy, next.UpdatedAt = by.UserID, a.Changes.Now()
		return admin.Done{Target: number(id), Detail: admin.Difference(old, next)}, a.Store.SaveResource(ctx, next)
	})
}

// RemoveResource deletes a resource and its grants, each with its line in the
// permission log. RECORD_NOT_FOUND; INVALID_STATE while resources are nested
// in it (D-RES-03), and for a resource of the endpoint table.
func (a *Admin) RemoveResource(ctx context.Context, by audit.By, id int64) error {
	return a.Changes.Do(ctx, by, "RESOURCE_DELETE", func(ctx context.Context) (admin.Done, error) {
		r, all, err := a.resource(ctx, id)
		if err != nil {
			return admin.Done{}, err
		}
		if _, ours := a.Table.find(r.Context, r.Code); ours {
			return admin.Done{}, state("%s belongs to the endpoint table", r.Code)
		}
		if child, nested := first(all, func(r Resource) bool { return r.ParentID == id }); nested {
			return admin.Done{}, state("%q is nested in it", child.Code)
		}
		grants, err := a.Store.Grants(ctx, GrantQuery{ResourceID: &id})
		if err != nil {
			return admin.Done{}, err
		}
		for _, g := range grants {
			if err := a.Store.RemoveGrant(ctx, g.RoleID, id, a.Changes.Now()); err != nil {
				return admin.Done{}, err
			}
		}
		return admin.Done{Target: number(id), Detail: admin.Values(r)},
			a.Store.RemoveResource(ctx, id)
	})
}

// resource returns a resource, and all of them.
func (a *Admin) resource(ctx context.Context, id int64) (r Resource, all []Resource, err error) {
	all, err = a.Store.Resources(ctx)
	r, err = one("resource", func(r Resource) bool { return r.ID == id }, all, err)
	return r, all, err
}

func (d Draft) applyTo(r Resource) Resource {
	r.Code, r.Name, r.Status, r.TypeID, r.Context = d.Code, d.Name, d.Status, d.TypeID, d.Context
	if d.Parent != nil {
		r.ParentID = *d.Parent
	}
	set(&r.Actions, d.Actions)
	set(&r.MenuItem, d.MenuItem)
	return r
}

// checkAgainst checks a resource against all others: its type and its parent exist in its context, and no resource is
// nested in itself (D-RES-02, 04).
func (a *Admin) checkAgainst(ctx context.Context, r Resource, all []Resource) error {
	types, err := a.Store.Types(ctx)
	if err != nil {
		return err
	}
	var ps fault.Problems
	t, known := first(types, func(t Type) bool { return t.ID == r.TypeID })
	ps.Require(known, "resourceTypeId", "is no resource type")
	ps.Require(!known || t.Context == r.Context, "resourceContext", "does not match the resource type")
	for at := r.ParentID; at != 0; {
		parent, ok := first(all, func(x Resource) bool { return x.ID == at })
		switch {
		case !ok:
			ps.Require(false, "parentResourceId", "is no resource")
		case parent.ID == r.ID:
			ps.Require(false, "parentResourceId", "would nest the resource in itself")
		case parent.Context != r.Context:
			ps.Require(false, "parentResourceId", "is of another context")
		default:
			at = parent.ParentID
			continue
		}
		break
	}
	if err := fault.All(ps); err != nil {
		return err
	}
	if _, twice := first(all, func(x Resource) bool {
		return x.ID != r.ID && x.Context == r.Context && x.Code == r.Code
	}); twice {
		return taken(r.Context, r.Code)
	}
	return nil
}
