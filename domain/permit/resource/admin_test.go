package resource_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// registry is the administration of a new installation that serves three endpoints. It has the UI type 'page'.
type registry struct {
	resource.Admin
	db                      *persistence.DB
	store                   resource.Store
	served                  resource.Resource
	pages, get              resource.Type
	administrators, members resource.Role
}

var by = audit.By{UserID: "boss"}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	db, at := persistencetest.SQLite(t), time.UnixMilli(1_700_000_000_000).UTC()
	r := &registry{db: db, store: permit.NewResources(db)}
	r.Admin = resource.Admin{Store: r.store, Accounts: account.NewUsers(db),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return at }},
		Table: resource.Table{{Method: "GET", Path: "/things", Name: "List things"},
			{Method: "POST", Path: "/keys", Reserved: true}, {Method: "PUT", Path: "/things"}}}
	storetest.Must(t, r.sync(t))
	_, err := r.AddType(t.Context(), by, typeDraft("page"))
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
	all, err := r.store.Resources(t.Context())
	storetest.Must(t, err)
	for _, x := range all {
		for code, to := range map[string]*resource.Resource{"GET /things": &r.served} {
			if x.Code == code {
				*to = x
			}
		}
	}
	types, err := r.store.Types(t.Context())
	storetest.Must(t, err)
	for _, x := range types {
		for code, to := range map[string]*resource.Type{"page": &r.pages, "GET": &r.get} {
			if x.Code == code {
				*to = x
			}
		}
	}
	roles, err := r.store.Roles(t.Context())
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

// A start that cannot read or write the records of the endpoints fails.
func TestSyncFails(t *testing.T) {
	r := newRegistry(t)
	persistencetest.Exec(t, r.db, "DELETE FROM role")
	r.Table[1].Method = "PATCH"
	persistencetest.Fails(t, r.db, "role resource_type resource", func(context.Context) error { return r.sync(t) })
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
