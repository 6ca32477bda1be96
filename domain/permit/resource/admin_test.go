package resource_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// registry is the administration of a new installation that serves three endpoints. It has the UI type 'page' with a
// page and a widget in it, the role clerk, and one user, who is an administrator.
type registry struct {
	resource.Admin
	db                             *persistence.DB
	store                          *failing
	page, widget, served           resource.Resource
	pages, get                     resource.Type
	clerk, administrators, members resource.Role
}

const (
	operator = "01HF0000000000000000000001"
	second   = "01HF0000000000000000000002"
)

var by = audit.By{UserID: operator}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	db, at := persistencetest.SQLite(t), time.UnixMilli(1_700_000_000_000).UTC()
	r := &registry{db: db, store: &failing{Store: permit.NewResources(db)}}
	r.Admin = resource.Admin{Store: r.store, Accounts: account.NewUsers(db),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return at }},
		Table: resource.Table{{Method: "GET", Path: "/things", Name: "List things"},
			{Method: "POST", Path: "/keys", Reserved: true}, {Method: "PUT", Path: "/things"}}}
	storetest.Must(t, r.sync(t))
	for i, id := range []string{operator, second} {
		u := user.New(id, at)
		u.Phone = "+9053200000" + string(rune('0'+i)) + "0"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	_, err := r.AssignRole(t.Context(), by, operator, user.RoleAdmin)
	storetest.Must(t, err)
	r.clerk, err = r.AddRole(t.Context(), by, "clerk", "Clerk")
	storetest.Must(t, err)
	id, err := r.AddType(t.Context(), by, typeDraft("page"))
	storetest.Must(t, err)
	pageID, err := r.AddResource(t.Context(), by, draft("/home", id, 0))
	storetest.Must(t, err)
	_, err = r.AddResource(t.Context(), by, draft("WIDGET one", id, pageID))
	storetest.Must(t, err)
	r.read(t)
	return r
}

func (r *registry) sync(t *testing.T) error {
	return r.db.InTx(t.Context(), func(ctx context.Context) error {
		return resource.Sync(ctx, r.store, r.Table, r.Changes.Now())
	})
}

// read finds the records of the registry by their codes.
func (r *registry) read(t *testing.T) {
	t.Helper()
	all, err := r.store.Store.Resources(t.Context())
	storetest.Must(t, err)
	for _, x := range all {
		for code, to := range map[string]*resource.Resource{"/home": &r.page, "WIDGET one": &r.widget,
			"GET /things": &r.served} {
			if x.Code == code {
				*to = x
			}
		}
	}
	types, err := r.store.Store.Types(t.Context())
	storetest.Must(t, err)
	for _, x := range types {
		for code, to := range map[string]*resource.Type{"page": &r.pages, "GET": &r.get} {
			if x.Code == code {
				*to = x
			}
		}
	}
	roles, err := r.store.Store.Roles(t.Context())
	storetest.Must(t, err)
	for _, x := range roles {
		for code, to := range map[string]*resource.Role{user.RoleAdmin: &r.administrators, user.RoleUser: &r.members} {
			if x.Code == code {
				*to = x
			}
		}
	}
}

func typeDraft(code string) resource.TypeDraft {
	return resource.TypeDraft{Code: code, Name: "Type " + code, Status: resource.Active, Context: resource.UI}
}

func draft(code string, typeID, parent int64) resource.Draft {
	return resource.Draft{Code: code, Name: "Resource " + code, Status: resource.Active, TypeID: typeID,
		Context: resource.UI, Parent: &parent}
}

// A start writes the rows of the endpoint table once, and repairs those that another version changed.
func TestSync(t *testing.T) {
	r := newRegistry(t)
	if r.served.Name != "List things" || r.served.TypeID != r.get.ID || r.served.Status != resource.Active ||
		r.served.CreatedBy != resource.System || r.get.Status != resource.Active ||
		r.administrators.ID == 0 || r.members.ID == 0 {
		t.Fatalf("%+v, %+v", r.served, r.get)
	}
	served, get := r.served, r.get
	served.Status, served.TypeID, served.Name = resource.Passive, r.pages.ID, "Another name"
	get.Status = resource.Passive
	storetest.Must(t, r.store.SaveResource(t.Context(), served))
	storetest.Must(t, r.store.SaveType(t.Context(), get))
	for _, method := range []string{"Lock", "Roles", "Types", "Resources", "SaveType", "SaveResource"} {
		r.store.method = method
		if err := r.sync(t); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", method, err)
		}
	}
	r.store.method = ""
	before, err := r.store.Resources(t.Context())
	storetest.Must(t, err)
	storetest.Must(t, r.sync(t))
	after, err := r.store.Resources(t.Context())
	storetest.Must(t, err)
	r.read(t)
	if len(after) != len(before) || r.served.Name != "Another name" || r.served.TypeID != r.get.ID ||
		r.served.Status != resource.Active || r.get.Status != resource.Active {
		t.Errorf("%d and %d resources, %+v, %+v", len(before), len(after), r.served, r.get)
	}
	for _, method := range []string{"AddRole", "AddType", "AddResource"} {
		empty := persistencetest.SQLite(t)
		persistencetest.Empty(t, empty, "resource", "resource_type", "role")
		s := &failing{Store: permit.NewResources(empty), method: method}
		if err := empty.InTx(t.Context(), func(ctx context.Context) error {
			return resource.Sync(ctx, s, r.Table, r.Changes.Now())
		}); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A type and a resource fit the registry, or the refusal names the field.
func TestRegistryRefusals(t *testing.T) {
	r := newRegistry(t)
	ctx := t.Context()
	add := func(d resource.Draft) error { _, err := r.AddResource(ctx, by, d); return err }
	change := func(id int64, d resource.Draft) error { return r.ChangeResource(ctx, by, id, d) }
	api := func(d resource.Draft) resource.Draft { d.Context = resource.API; return d }

	storetest.WantsFields(t, add(resource.Draft{Context: "X", Status: 2}), "code name status resourceContext")
	storetest.WantsFields(t, add(draft("/a", 99, 0)), "resourceTypeId")
	storetest.WantsFields(t, add(api(draft("/a", r.pages.ID, 0))), "resourceContext")
	storetest.WantsFields(t, add(draft("/a", r.pages.ID, 999)), "parentResourceId")
	storetest.WantsFields(t, add(draft("/a", r.pages.ID, r.served.ID)), "parentResourceId")
	storetest.WantsFields(t, change(r.page.ID, draft("/home", r.pages.ID, r.page.ID)), "parentResourceId")
	storetest.WantsFields(t, change(r.page.ID, draft("/home", r.pages.ID, r.widget.ID)), "parentResourceId")
	storetest.Wants(t, add(draft("/home", r.pages.ID, 0)), fault.RecordAlreadyExist)
	storetest.Wants(t, change(r.widget.ID, draft("/home", r.pages.ID, 0)), fault.RecordAlreadyExist)
	storetest.Wants(t, change(999, draft("/b", r.pages.ID, 0)), fault.RecordNotFound)
	storetest.Wants(t, change(r.served.ID, draft("GET /things", r.pages.ID, 0)), fault.InvalidState)
	storetest.Wants(t, r.RemoveResource(ctx, by, r.served.ID), fault.InvalidState)
	storetest.Wants(t, r.RemoveResource(ctx, by, r.page.ID), fault.InvalidState)
	storetest.Wants(t, r.RemoveResource(ctx, by, 999), fault.RecordNotFound)

	rpc := typeDraft("rpc")
	rpc.Context = resource.API
	apiType, err := r.AddType(ctx, by, rpc)
	storetest.Must(t, err)
	storetest.Wants(t, change(r.page.ID, api(draft("/home", apiType, 0))), fault.InvalidState) // with the widget in it
	storetest.Must(t, change(r.widget.ID, api(draft("WIDGET one", apiType, 0))))
	storetest.WantsFields(t, change(r.page.ID, resource.Draft{Context: "X", Status: 2}),
		"code name status resourceContext")
	storetest.WantsFields(t, r.ChangeType(ctx, by, r.pages.ID, resource.TypeDraft{Context: "X", Status: 2}),
		"code name status resourceContext")

	_, err = r.AddType(ctx, by, resource.TypeDraft{Context: "X", Status: 2})
	storetest.WantsFields(t, err, "code name status resourceContext")
	_, err = r.AddType(ctx, by, typeDraft("page"))
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	storetest.Wants(t, r.ChangeType(ctx, by, 999, typeDraft("x")), fault.RecordNotFound)
	storetest.Wants(t, r.ChangeType(ctx, by, r.get.ID, typeDraft("GET")), fault.InvalidState)
	moved := typeDraft("page")
	moved.Context = resource.API
	storetest.Wants(t, r.ChangeType(ctx, by, r.pages.ID, moved), fault.InvalidState)
	storetest.Wants(t, r.RemoveType(ctx, by, r.pages.ID), fault.InvalidState)
	storetest.Wants(t, r.RemoveType(ctx, by, r.get.ID), fault.InvalidState)
	storetest.Wants(t, r.RemoveType(ctx, by, 999), fault.RecordNotFound)
}

// Codes and names have at most 500 characters.
func TestLengthOfCodes(t *testing.T) {
	r := newRegistry(t)
	for n, fields := range map[int]string{500: "", 501: "code name"} {
		d := draft(strings.Repeat("ü", n), r.pages.ID, 0)
		d.Name = d.Code
		_, err := r.AddResource(t.Context(), by, d)
		if fields == "" {
			storetest.Must(t, err)
		} else if storetest.WantsFields(t, err, fields); !strings.Contains(err.Error(), "longer than 500 characters") {
			t.Error(err)
		}
	}
}

// A resource of a page may have the code of an endpoint. It does not belong to the endpoint table.
func TestPageWithTheCodeOfAnEndpoint(t *testing.T) {
	r := newRegistry(t)
	id, err := r.AddResource(t.Context(), by, draft("/things", r.pages.ID, 0))
	storetest.Must(t, err)
	for _, code := range []string{"PUT /things", "GET /things"} {
		storetest.Must(t, r.ChangeResource(t.Context(), by, id, draft(code, r.pages.ID, 0)))
	}
	storetest.Must(t, r.ChangeResource(t.Context(), by, id, draft("/other", r.pages.ID, 0)))
	storetest.Must(t, r.RemoveResource(t.Context(), by, id))
}

// Records are changed and removed, and a change without a value keeps the old one.
func TestRegistryChanges(t *testing.T) {
	r := newRegistry(t)
	ctx := t.Context()
	d := draft("WIDGET two", r.pages.ID, 0)
	d.Status, d.Actions = resource.Passive, new(json.RawMessage(`["read"]`))
	storetest.Must(t, r.ChangeResource(ctx, by, r.widget.ID, d))
	d.Code, d.Parent, d.Actions, d.MenuItem = "WIDGET one", &r.page.ID, nil, new(json.RawMessage(` null`))
	storetest.Must(t, r.ChangeResource(ctx, by, r.widget.ID, d))
	r.read(t)
	if w := r.widget; string(w.Actions) != `["read"]` || w.ParentID != r.page.ID || w.Status != resource.Passive ||
		w.MenuItem != nil || w.UpdatedBy != operator {
		t.Errorf("%+v", w)
	}
	name := typeDraft("page")
	name.Name = "Pages"
	storetest.Must(t, r.ChangeType(ctx, by, r.pages.ID, name))
	if r.read(t); r.pages.Name != "Pages" {
		t.Errorf("%+v", r.pages)
	}
	_, err := r.Grant(ctx, by, r.clerk.ID, r.widget.ID, resource.Allow)
	storetest.Must(t, err)
	storetest.Must(t, r.RemoveResource(ctx, by, r.widget.ID))
	storetest.Must(t, r.RemoveResource(ctx, by, r.page.ID))
	if left, err := r.store.Grants(ctx, resource.GrantQuery{}); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	storetest.Must(t, r.RemoveType(ctx, by, r.pages.ID))
}

// A grant names an existing role and resource, and the role admin has none.
func TestGrants(t *testing.T) {
	r := newRegistry(t)
	ctx := t.Context()
	grant := func(role, of int64, p resource.Permission) error {
		_, err := r.Grant(ctx, by, role, of, p)
		return err
	}
	revoke := func(role, of int64) error { _, err := r.Revoke(ctx, by, role, of); return err }
	all, err := r.store.Resources(ctx)
	storetest.Must(t, err)
	for _, x := range all {
		if x.Code == "POST /keys" {
			storetest.WantsFields(t, grant(r.clerk.ID, x.ID, resource.Allow), "resourceId")
		}
	}
	storetest.WantsFields(t, grant(r.clerk.ID, r.page.ID, "MAYBE"), "permission")
	storetest.Wants(t, grant(999, r.page.ID, resource.Allow), fault.RecordNotFound)
	storetest.Wants(t, grant(r.clerk.ID, 999, resource.Allow), fault.RecordNotFound)
	storetest.Wants(t, grant(r.administrators.ID, r.page.ID, resource.Allow), fault.InvalidState)
	storetest.Must(t, grant(r.clerk.ID, r.page.ID, resource.Allow))
	storetest.Wants(t, grant(r.clerk.ID, r.page.ID, resource.Allow), fault.RecordAlreadyExist)
	storetest.Must(t, grant(r.clerk.ID, r.page.ID, resource.Deny))
	storetest.Must(t, revoke(r.clerk.ID, r.page.ID))
	storetest.Wants(t, revoke(r.clerk.ID, r.page.ID), fault.RecordNotFound)
}

// A role is given once to an existing account, and the last administrator keeps the role admin.
func TestRolesOfAccounts(t *testing.T) {
	r := newRegistry(t)
	ctx := t.Context()
	give := func(id, code string) error { _, err := r.AssignRole(ctx, by, id, code); return err }
	take := func(id, code string) error { _, err := r.RevokeRole(ctx, by, id, code); return err }
	storetest.Wants(t, give("unknown", "clerk"), fault.RecordNotFound)
	storetest.Wants(t, give(operator, "unknown"), fault.RecordNotFound)
	storetest.Wants(t, give(operator, user.RoleUser), fault.RecordAlreadyExist)
	storetest.Must(t, give(operator, "clerk"))
	storetest.Wants(t, give(operator, "clerk"), fault.RecordAlreadyExist)
	_, err := r.RemoveRole(ctx, by, "clerk")
	storetest.Wants(t, err, fault.InvalidState)
	storetest.Wants(t, take("unknown", "clerk"), fault.RecordNotFound)
	storetest.Wants(t, take(operator, user.RoleUser), fault.InvalidState)
	storetest.Must(t, take(operator, "clerk"))
	storetest.Wants(t, take(operator, "clerk"), fault.RecordNotFound)
	storetest.Wants(t, take(operator, user.RoleAdmin), fault.InvalidState)
	cv := func() int64 {
		u, err := r.Accounts.Get(ctx, second)
		storetest.Must(t, err)
		return u.CV
	}
	before := cv()
	storetest.Must(t, give(second, user.RoleAdmin))
	if got := cv(); got != before+1 { // it ends remembered browsers and open challenges
		t.Errorf("the credential version is %d after %d", got, before)
	}
	storetest.Must(t, take(operator, user.RoleAdmin))

	for _, code := range []string{user.RoleAdmin, user.RoleUser} {
		_, err := r.RemoveRole(ctx, by, code)
		storetest.Wants(t, err, fault.InvalidState)
	}
	_, err = r.RemoveRole(ctx, by, "unknown")
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = r.Grant(ctx, by, r.clerk.ID, r.page.ID, resource.Audit)
	storetest.Must(t, err)
	_, err = r.RemoveRole(ctx, by, "clerk")
	storetest.Wants(t, err, fault.InvalidState)
	_, err = r.Revoke(ctx, by, r.clerk.ID, r.page.ID)
	storetest.Must(t, err)
	_, err = r.RemoveRole(ctx, by, "clerk")
	storetest.Must(t, err)
	_, err = r.AddRole(ctx, by, "a b", " ")
	storetest.WantsFields(t, err, "code name")
}
