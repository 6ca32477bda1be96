package resource_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
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

// registry is the administration of a new installation that serves three endpoints. It has the UI type 'page'.
type registry struct {
	resource.Admin
	db   *persistence.DB
	page int64
}

var by = audit.By{UserID: "boss"}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	db, at := persistencetest.SQLite(t), time.UnixMilli(1_700_000_000_000).UTC()
	r := &registry{db: db, Admin: resource.Admin{Store: permit.NewResources(db), Accounts: account.NewUsers(db),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return at }},
		Table: resource.Table{{Method: "GET", Path: "/things", Name: "List things"},
			{Method: "POST", Path: "/keys", Reserved: true}, {Method: "PUT", Path: "/things"}}}}
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		return resource.Sync(ctx, r.Store, r.Table, at)
	}))
	var err error
	r.page, err = r.AddType(t.Context(), by, typeDraft("page"))
	storetest.Must(t, err)
	return r
}

func typeDraft(code string) resource.TypeDraft {
	return resource.TypeDraft{Code: code, Name: "Type " + code, Status: resource.Active, Context: resource.UI}
}

func draft(code string, typeID, parent int64) resource.Draft {
	return resource.Draft{Code: code, Name: "Resource " + code, Status: resource.Active, TypeID: typeID,
		Context: resource.UI, Parent: &parent}
}

// A role of a service key cannot be deleted: another of the same code would give the key its permissions.
func TestRemoveRoleOfServiceKey(t *testing.T) {
	r, keyed := newRegistry(t), true
	r.Keyed = func(_ context.Context, role string) (bool, error) { return keyed && role == "r", nil }
	_, err := r.AddRole(t.Context(), by, "r", "R")
	storetest.Must(t, err)
	_, err = r.RemoveRole(t.Context(), by, "r")
	storetest.Wants(t, err, fault.InvalidState)
	keyed = false
	_, err = r.RemoveRole(t.Context(), by, "r")
	storetest.Must(t, err)
}

// Codes and names have at most 500 characters. The name of a role is neither blank nor has control characters.
func TestLengthOfCodes(t *testing.T) {
	r := newRegistry(t)
	for n, fields := range map[int]string{500: "", 501: "code name"} {
		d := draft(strings.Repeat("ü", n), r.page, 0)
		d.Name = d.Code
		_, err := r.AddResource(t.Context(), by, d)
		if fields == "" {
			storetest.Must(t, err)
		} else if storetest.WantsFields(t, err, fields); !strings.Contains(err.Error(), "longer than 500 characters") {
			t.Error(err)
		}
		_, err = r.AddRole(t.Context(), by, fmt.Sprint("r", n), d.Name)
		storetest.WantsFields(t, err, strings.TrimPrefix(fields, "code "))
	}
	for _, name := range []string{" ", "a\x00"} {
		_, err := r.AddRole(t.Context(), by, "r", name)
		storetest.WantsFields(t, err, "name")
	}
}

// The audit of a grant names the permission, the resource and the former permission.
func TestAuditOfGrants(t *testing.T) {
	r := newRegistry(t)
	role := storetest.Value(r.AddRole(t.Context(), by, "r", "R"))(t)
	all, err := r.Store.Resources(t.Context())
	storetest.Must(t, err)
	at := all[slices.IndexFunc(all, func(x resource.Resource) bool { return x.Code == "GET /things" })].ID
	for _, p := range []resource.Permission{resource.Allow, resource.Deny} {
		_, err := r.Grant(t.Context(), by, role.ID, at, p)
		storetest.Must(t, err)
	}
	_, err = r.Revoke(t.Context(), by, role.ID, at)
	storetest.Must(t, err)
	acts := persistencetest.Acts(t, r.db)
	storetest.Same(t, acts[len(acts)-3:], []string{"PERMISSION_SET|boss||r|ALLOW on GET /things",
		"PERMISSION_SET|boss||r|DENY on GET /things, was ALLOW", "PERMISSION_DELETE|boss||r|DENY on GET /things"})
}

// The role of the last administrator cannot be revoked. An account that cannot log in is none: one that is blocked, and
// a demo account outside of development.
func TestRevokeRoleOfLastAdministrator(t *testing.T) {
	type account struct{ blocked, demo, dev bool }
	for c, want := range map[account]fault.Code{{}: fault.InvalidState, {blocked: true}: "", {demo: true}: "",
		{demo: true, dev: true}: fault.InvalidState} {
		r, a := newRegistry(t), usertest.Sample(1)
		if a.Demo, r.Dev = c.demo, c.dev; c.blocked {
			a.Status = user.Blocked
		}
		storetest.Must(t, r.db.Commit(t.Context(), a))
		_, err := r.AssignRole(t.Context(), by, a.ID, user.RoleAdmin)
		storetest.Must(t, err)
		if m, err := r.RevokeRole(t.Context(), by, a.ID, user.RoleAdmin); fault.CodeOf(err) != want ||
			err == nil && (m.UserID != a.ID || m.RoleCode != user.RoleAdmin) {
			t.Errorf("%+v: %+v, %v", c, m, err)
		}
	}
}

// A change names its author and its time, beside those of the creation. It keeps what was not sent.
func TestChangeOfRecords(t *testing.T) {
	r := newRegistry(t)
	made := r.Changes.Now()
	id := storetest.Value(r.AddResource(t.Context(), by, draft("/a", r.page, 0)))(t)
	free := storetest.Value(r.AddType(t.Context(), by, typeDraft("free")))(t)
	r.Changes.Now = func() time.Time { return made.Add(time.Hour) }
	stamp, second := resource.Stamp{CreatedBy: "boss", CreatedAt: made, UpdatedBy: "second",
		UpdatedAt: made.Add(time.Hour)}, audit.By{UserID: "second"}
	storetest.Must(t, r.ChangeType(t.Context(), second, free, resource.TypeDraft{Code: "other", Name: "Other",
		Status: resource.Passive, Context: resource.API}))
	types := storetest.Value(r.Store.Types(t.Context()))(t)
	storetest.Same(t, types[len(types)-1], resource.Type{ID: free, Code: "other", Name: "Other", Status: resource.Passive,
		Context: resource.API, Stamp: stamp})
	storetest.Must(t, r.ChangeResource(t.Context(), second, id, resource.Draft{Code: "/b", Name: "B",
		Status: resource.Passive, TypeID: r.page, Context: resource.UI}))
	all := storetest.Value(r.Store.Resources(t.Context()))(t)
	storetest.Same(t, all[len(all)-1], resource.Resource{ID: id, Code: "/b", Name: "B", Status: resource.Passive,
		TypeID: r.page, TypeCode: "page", Context: resource.UI, Stamp: stamp})
}

// A resource of a page may have the code of an endpoint. It does not belong to the endpoint table.
func TestPageWithTheCodeOfAnEndpoint(t *testing.T) {
	r := newRegistry(t)
	id := storetest.Value(r.AddResource(t.Context(), by, draft("/things", r.page, 0)))(t)
	for _, code := range []string{"PUT /things", "GET /things"} {
		storetest.Must(t, r.ChangeResource(t.Context(), by, id, draft(code, r.page, 0)))
	}
	storetest.Must(t, r.ChangeResource(t.Context(), by, id, draft("/other", r.page, 0)))
	storetest.Must(t, r.RemoveResource(t.Context(), by, id))
}

// The rule agrees with a plain model of permissions for accounts with random roles. It refuses a write about a user in
// exactly two cases. Either the user has a permission that the caller lacks, or the caller may not decide this matter
// of its own account.
func TestMayWriteFollowsPermissions(t *testing.T) {
	const seed = 22
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	table := resource.Table{{Method: "POST", Path: "/a"}, {Method: "POST", Path: "/b"}, {Method: "GET", Path: "/b"},
		{Method: "GET", Path: "/open", Open: true}, {Method: "POST", Path: "/open", Open: true},
		{Method: "POST", Path: "/both", Open: true, ForOthers: true}}
	refused, allowed := 0, 0
	for range 300 {
		n := &node{held: map[string][]string{"admin": {"root"}}}
		given := map[string]map[string]resource.Permission{}
		for _, role := range []string{"r1", "r2", "r3", "user"} {
			given[role] = map[string]resource.Permission{}
			for _, e := range table {
				some := []resource.Permission{resource.None, resource.Allow, resource.Audit, resource.Deny}
				p := some[random.IntN(len(some))]
				if p == resource.None || role == "user" && random.IntN(3) > 0 {
					continue
				}
				given[role][e.Code()] = p
				n.grants = append(n.grants, grant(role, e.Code(), p))
			}
		}
		rolesOf := map[string][]string{"root": {"admin"}}
		accounts := []string{"root", "plain", "u1", "u2", "u3", "u4"}
		for _, account := range accounts[2:] {
			for _, role := range []string{"r1", "r2", "r3"} {
				if random.IntN(2) == 0 {
					n.held[role] = append(n.held[role], account)
					rolesOf[account] = append(rolesOf[account], role)
				}
			}
		}
		live := resource.NewCache(n, n, table)
		storetest.Must(t, live.Reload(t.Context()))
		for _, caller := range accounts {
			mine := permissions(table, given, rolesOf[caller])
			for _, userID := range accounts {
				lacks := slices.ContainsFunc(permissions(table, given, rolesOf[userID]),
					func(p string) bool { return !slices.Contains(mine, p) })
				for _, m := range []resource.Matter{resource.General, resource.Contact, resource.Standing} {
					want := lacks
					if caller == userID {
						want = m != resource.General
					}
					err := live.MayWrite(caller, userID, m)
					if want != (fault.CodeOf(err) == fault.Forbidden) || !want && err != nil {
						t.Errorf("%s, who has %v, writes about %s, who has %v (%s): %v", caller, rolesOf[caller], userID,
							rolesOf[userID], m, err)
					}
					if want {
						refused++
					} else {
						allowed++
					}
				}
				storetest.Is(t, live.MayWrite(audit.Operator.UserID, userID, resource.Standing), nil, "a command", userID)
			}
		}
	}
	if refused < 5000 || allowed < 5000 {
		t.Errorf("%d refused and %d allowed prove too little", refused, allowed)
	}
}

// permissions lists the permissions of an account with some roles, directly from D-AUTH-03.
func permissions(table resource.Table, given map[string]map[string]resource.Permission,
	roles []string) (all []string) {
	for _, e := range table {
		var said []resource.Permission
		for _, role := range append([]string{"user"}, roles...) {
			said = append(said, given[role][e.Code()])
		}
		admin, denied := slices.Contains(roles, "admin"), slices.Contains(said, resource.Deny)
		granted := slices.Contains(said, resource.Allow) || slices.Contains(said, resource.Audit)
		if e.Open && (admin || !denied) {
			all = append(all, "use "+e.Code())
		}
		if (!e.Open || e.ForOthers) && (admin || granted && !denied) {
			all = append(all, "act at "+e.Code())
		}
	}
	if slices.Contains(roles, "admin") {
		all = append(all, "use what is reserved")
	}
	return all
}
