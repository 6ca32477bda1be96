package permit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// lockCount counts how often the lock was taken.
type lockCount struct {
	resource.Store
	n int64
}

func (c *lockCount) Lock(ctx context.Context) error {
	c.n++
	return c.Store.Lock(ctx)
}

// Every change commits with its audit row, its note and, where it is about a
// grant, its line in the permission log, or not at all. The node that made it
// works with it at once, another one as soon as it reads the feed.
func TestResourceAdmin(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		table := resource.Table{{Method: "GET", Path: "/x", Name: "X"},
			{Method: "GET", Path: "/closed", Name: "C", Reserved: true}}
		store, users := permit.NewResources(db), account.NewUsers(db)
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			return resource.Sync(ctx, store, table, time.Now())
		}))
		node := func() (*resource.Cache, *change.Reader) {
			live := resource.NewCache(store, users, nil)
			feed := change.NewReader(kit.NewChanges(db), time.Now)
			feed.On(change.Roles, live.Follow)
			feed.On(change.Users, live.FollowAccounts)
			storetest.Must(t, errors.Join(live.Reload(ctx), feed.Poll(ctx)))
			return live, feed
		}
		here, _ := node()
		there, feed := node()
		locks := &lockCount{Store: store}
		registry := &resource.Admin{Store: locks, Accounts: users, Table: table, Changes: admin.Changes{Commit: db,
			Now: time.Now, Topic: change.Roles, Lock: locks.Lock, Follow: here.Follow}}
		by := audit.By{UserID: "admin1", IP: "192.0.2.9", RequestID: "r1"}
		u := user.New("u1", time.Now())
		u.Phone = "+905320000001"
		storetest.Must(t, db.Commit(ctx, user.Add{User: u}))

		resources, err := store.Resources(ctx)
		storetest.Must(t, err)
		x := resources[0].ID
		var role resource.Role
		var typ, p int64
		ui := resource.Draft{Code: "/p", Name: "P", Status: resource.Active, Context: resource.UI}
		judged := func(want resource.Permission) {
			t.Helper()
			if v := here.Judge("u1", "GET", "/x"); v.Permission != want {
				t.Errorf("this node judges %+v, want %s", v, want)
			}
			storetest.Must(t, feed.Poll(ctx))
			if v := there.Judge("u1", "GET", "/x"); v.Permission != want {
				t.Errorf("the other node judges %+v, want %s", v, want)
			}
		}
		lines := func(ctx context.Context) (int, error) {
			got, err := store.Log(ctx, resource.LogQuery{}, page.Query[resource.LogPlace]{Count: true})
			return got.Total, err
		}
		rows, log := int64(0), 0
		for _, step := range []struct {
			action string
			about  string
			lines  int // of the permission log
			want   resource.Permission
			do     func() error
		}{
			{"ROLE_ADD", "", 0, "", func() (err error) { role, err = registry.AddRole(ctx, by, "r", "R"); return err }},
			{"USER_ROLE_ADD", "u1", 0, "", func() error { return storetest.Err(registry.AssignRole(ctx, by, "u1", "r")) }},
			{"PERMISSION_SET", "", 1, resource.Allow, func() error {
				_, err := registry.Grant(ctx, by, role.ID, x,
					resource.Allow)
				return err
			}},
			{"PERMISSION_SET", "", 1, resource.Deny, func() error {
				_, err := registry.Grant(ctx, by, role.ID, x,
					resource.Deny)
				return err
			}},
			{"USER_ROLE_DELETE", "u1", 0, "", func() error { return storetest.Err(registry.RevokeRole(ctx, by, "u1", "r")) }},
			{"USER_ROLE_ADD", "u1", 0, resource.Deny, func() error {
				_, err := registry.AssignRole(ctx, by, "u1",
					"r")
				return err
			}},
			{"PERMISSION_DELETE", "", 1, "", func() error {
				_, err := registry.Revoke(ctx, by, role.ID,
					x)
				return err
			}},
			{"RESOURCE_TYPE_ADD", "", 0, "", func() (err error) {
				typ, err = registry.AddType(ctx, by, resource.TypeDraft{Name: "Page", Code: "page",
					Context: resource.UI})
				return err
			}},
			{"RESOURCE_TYPE_UPDATE", "", 0, "", func() error {
				return registry.ChangeType(ctx, by, typ,
					resource.TypeDraft{Name: "Page", Code: "page", Status: resource.Active, Context: resource.UI})
			}},
			{"RESOURCE_ADD", "", 0, "", func() (err error) {
				ui.TypeID = typ
				p, err = registry.AddResource(ctx, by, ui)
				return err
			}},
			{"RESOURCE_UPDATE", "", 0, "", func() error {
				ui.Name = "Q"
				return registry.ChangeResource(ctx, by, p, ui)
			}},
			{"PERMISSION_SET", "", 1, "", func() error {
				_, err := registry.Grant(ctx, by, role.ID, p, resource.Allow)
				return err
			}},
			{"RESOURCE_DELETE", "", 1, "", func() error { return registry.RemoveResource(ctx, by, p) }},
			{"RESOURCE_TYPE_DELETE", "", 0, "", func() error { return registry.RemoveType(ctx, by, typ) }},
			{"USER_ROLE_DELETE", "u1", 0, "", func() error { return storetest.Err(registry.RevokeRole(ctx, by, "u1", "r")) }},
			{"ROLE_DELETE", "", 0, "", func() (err error) {
				role, err = registry.RemoveRole(ctx, by,
					"r")
				return err
			}},
		} {
			storetest.Must(t, step.do())
			judged(step.want)
			rows, log = rows+1, log+step.lines
			storetest.Equal(t, locks.n, rows, step.action)
			last := persistencetest.Did(t, db, step.action)[0]
			if last.ActorID != "admin1" || last.UserID != step.about || last.IP != "192.0.2.9" ||
				last.RequestID != "r1" || last.Target == "" || last.Detail == "" || last.Outcome != "success" {
				t.Errorf("%s: audit %+v", step.action, last)
			}
			storetest.Equal(t, storetest.Value(lines(ctx))(t), log, step.action)
		}
		notes := storetest.Value(kit.NewChanges(db).Since(ctx, time.Now().Add(-time.Hour)))(t)
		for _, n := range notes {
			storetest.Equal(t, n.Topic, change.Roles, n)
		}
		trail := func() int64 {
			t.Helper()
			n := storetest.Value(kit.NewAudit(db).Verify(ctx, []byte("audit key of the test")))(t)
			return n
		}
		storetest.Equal(t, int64(len(notes)), rows, len(notes))
		storetest.Equal(t, trail(), rows, len(notes))

		// A running node knows the writes of the command line (D-AUTH-03).
		chief := user.New("u2", time.Now())
		chief.Phone, chief.Roles = "+905320000002", []string{user.RoleAdmin}
		storetest.Must(t, db.Commit(ctx, user.Add{User: chief}, change.Note{Topic: change.Users, Key: chief.ID}))
		storetest.Must(t, feed.Poll(ctx))
		if !there.Judge("u2", "GET", "/closed").Admin {
			t.Error("an administrator of the command line is not known")
		}
		// A demonstration account is no administrator where it cannot log in.
		demo := user.New("u3", time.Now())
		demo.Phone, demo.Roles, demo.Demo = "+905320000003", []string{user.RoleAdmin}, true
		storetest.Must(t, db.Commit(ctx, user.Add{User: demo}))
		storetest.Wants(t, storetest.Err(registry.RevokeRole(ctx, by, "u2", user.RoleAdmin)), fault.InvalidState)
		registry.Dev = true
		_, err = registry.RevokeRole(ctx, by, "u2", user.RoleAdmin)
		storetest.Must(t, err)
		storetest.Wants(t, storetest.Err(registry.RevokeRole(ctx, by, "u3", user.RoleAdmin)), fault.InvalidState)
	})
}
