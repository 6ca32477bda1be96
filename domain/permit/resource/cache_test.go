package resource_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
)

// node is the data source of a Cache and counts the reads.
type node struct {
	resource.Store
	grants []resource.Grant
	held   map[string][]string
	reads  int // of the grants
	listed int // readings of all roles
	asked  int // accounts whose roles were read
	err    error
}

func (n *node) Grants(context.Context, resource.GrantQuery) ([]resource.Grant, error) {
	n.reads++
	return n.grants, n.err
}

func (n *node) Holders(context.Context) (map[string][]string, error) {
	n.listed++
	return n.held, nil
}

func (n *node) RolesOf(_ context.Context, ids []string) (map[string][]string, error) {
	n.asked += len(ids)
	given := map[string][]string{}
	for role, holders := range n.held {
		for _, id := range ids {
			if slices.Contains(holders, id) {
				given[id] = append(given[id], role)
			}
		}
	}
	return given, n.err
}

func (n *node) Get(_ context.Context, id string) (user.User, error) {
	u := user.User{ID: id}
	for role, ids := range n.held {
		if slices.Contains(ids, id) {
			u.Roles = append(u.Roles, role)
		}
	}
	if len(u.Roles) == 0 && id == "gone" {
		return user.User{}, fault.New(fault.RecordNotFound, "gone")
	}
	return u, n.err
}

func grant(role, code string, p resource.Permission) resource.Grant {
	return resource.Grant{RoleCode: role, ResourceCode: code, Context: resource.API, Permission: p}
}

// Roles combine: DENY wins over AUDIT, AUDIT over ALLOW. Every account has the role user, and admin has all
// permissions whatever the grants (D-AUTH-03).
func TestJudge(t *testing.T) {
	const code = "GET /x"
	ui := grant("r", code, resource.Deny)
	ui.Context = resource.UI
	n := &node{
		grants: []resource.Grant{grant("allow", code, resource.Allow), grant("deny", code, resource.Deny),
			grant("audit", code, resource.Audit),
			grant("user", "GET /closed", resource.Deny), ui, grant("user", "no method", resource.Allow),
			grant("user", "word", resource.Allow)},
		held: map[string][]string{
			"allow": {"a", "ad", "au", "all", "root"}, "deny": {"d", "ad", "all", "root"}, "audit": {"u", "au", "all"},
			"r": {"r"}, "admin": {"root", "chief"},
			"user": {"plain row"},
		},
	}
	live := resource.NewCache(n, n, nil)
	if v := live.Judge("root", "GET", "/x"); v.Admin || v.MayAdminister() {
		t.Error("acts before the first reload")
	}
	storetest.Must(t, live.Reload(t.Context()))
	for _, c := range []struct {
		user string
		want resource.Permission
	}{{"a", resource.Allow}, {"d", resource.Deny}, {"u", resource.Audit}, {"ad", resource.Deny}, {"au", resource.Audit},
		{"all", resource.Deny},
		{"r", resource.None}, {"nobody", resource.None}, {"plain row", resource.None}, {"", resource.None}} {
		v := live.Judge(c.user, "GET", "/x")
		want := resource.Verdict{Permission: c.want}
		acts := c.want == resource.Allow || c.want == resource.Audit
		if v != want || v.MayAdminister() != acts || v.Denied() != (c.want == resource.Deny) ||
			v.Audited() != (c.want == resource.Audit) {
			t.Errorf("%q: %+v", c.user, v)
		}
		for _, near := range [][2]string{{"POST", "/x"}, {"GET", "/x/"}, {"GET", "/"}, {"get", "/x"}, {"", "GET /x"}} {
			if v := live.Judge(c.user, near[0], near[1]); v.Permission != resource.None {
				t.Errorf("%q at %v: %+v", c.user, near, v)
			}
		}
		if v := live.Judge(c.user, "GET", "/closed"); !v.Denied() {
			t.Errorf("%q is not kept out by what is denied to users", c.user)
		}
	}
	for _, admin := range []string{"root", "chief"} {
		for _, path := range []string{"/x", "/closed", "/any"} {
			if v := live.Judge(admin, "GET", path); !v.Admin || !v.MayAdminister() || v.Denied() || v.Audited() {
				t.Errorf("%s at %s: %+v", admin, path, v)
			}
		}
	}
	for _, userID := range []string{"root", "plain", "ad"} {
		if n := testing.AllocsPerRun(100, func() {
			live.Judge("ad", "GET", "/x")
			_ = live.MayWrite("ad", userID, resource.Contact)
		}); n != 0 {
			t.Errorf("a verdict about %s allocates %v times", userID, n)
		}
	}
}

// A role by itself has its own grants and not those of every account.
func TestJudgeRole(t *testing.T) {
	n := &node{grants: []resource.Grant{grant("clerk", "GET /x", resource.Audit), grant("user", "GET /y", resource.Allow)}}
	live := resource.NewCache(n, n, nil)
	storetest.Must(t, live.Reload(t.Context()))
	for _, c := range []struct {
		role, path string
		want       resource.Verdict
	}{
		{"clerk", "/x", resource.Verdict{Permission: resource.Audit}}, {"clerk", "/y", resource.Verdict{}},
		{"user", "/y", resource.Verdict{Permission: resource.Allow}}, {"unknown", "/y", resource.Verdict{}},
		{"admin", "/x", resource.Verdict{Admin: true}},
	} {
		if got := live.JudgeRole(c.role, "GET", c.path); got.Permission != c.want.Permission || got.Admin != c.want.Admin {
			t.Errorf("%s at %s: %+v", c.role, c.path, got)
		}
	}
	n.err = errors.New("gone")
	n.grants = nil
	if err := live.Follow(t.Context(), resource.GrantsKey); !errors.Is(err, n.err) ||
		!live.JudgeRole("clerk", "GET", "/x").Audited() {
		t.Errorf("after grants that could not be read: %v", err)
	}
}

// A change rereads only the changed data: the roles of the changed accounts, or the grants. Any other key rereads
// everything.
func TestFollow(t *testing.T) {
	n := &node{held: map[string][]string{"admin": {"root"}, "b": {"two"}, "a": {"two"}}}
	live := resource.NewCache(n, n, nil)
	storetest.Must(t, live.Reload(t.Context()))
	follow := func(accounts, grants, all int, keys ...string) {
		t.Helper()
		n.asked, n.reads, n.listed = 0, 0, 0
		storetest.Is(t, live.Follow(t.Context(), keys...), nil)
		if n.asked != accounts || n.reads != grants || n.listed != all {
			t.Errorf("%v: read the roles of %d accounts, the grants %d times, all roles %d times; want %d, %d, %d",
				keys, n.asked, n.reads, n.listed, accounts, grants, all)
		}
	}
	root, two, plain := resource.AccountKey("root"), resource.AccountKey("two"), resource.AccountKey("plain")
	follow(3, 0, 0, root, two, root, resource.AccountKey("gone"))
	n.held["admin"] = []string{"plain"}
	follow(2, 0, 0, plain, root)
	if live.Judge("root", "GET", "/").Admin || !live.Judge("plain", "GET", "/").Admin {
		t.Error("the role did not move")
	}
	n.grants = []resource.Grant{grant("a", "GET /x", resource.Allow)}
	follow(1, 1, 0, two, resource.GrantsKey)
	if !live.Judge("two", "GET", "/x").MayAdminister() || live.Judge("root", "GET", "/x").MayAdminister() {
		t.Error("the grant does not count")
	}
	n.held = map[string][]string{"admin": {"root"}}
	follow(0, 1, 1, "17", plain)
	if !live.Judge("root", "GET", "/").Admin || live.Judge("plain", "GET", "/").Admin {
		t.Error("not everything was read")
	}
	n.held["admin"] = nil
	if err := live.FollowAccounts(t.Context(), "root"); err != nil || live.Judge("root", "GET", "/").Admin {
		t.Errorf("an account without its role: %v", err)
	}
	n.err = errors.New("gone")
	storetest.Is(t, live.FollowAccounts(t.Context(), "root"), n.err, "a note that could not be followed")
}
