package auth_test

import (
	"context"
	"fmt"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/permit/resource"
	"castellan/http/auth"
	"castellan/http/rest"
)

// node is a node's roles and grants, held in memory.
type node struct {
	resource.Store
	grants []resource.Grant
	held   map[string][]string
}

func (n node) Grants(context.Context, resource.GrantQuery) ([]resource.Grant, error) {
	return n.grants, nil
}
func (n node) RolesOf(context.Context, []string) (map[string][]string, error) { return nil, nil }
func (n node) Holders(context.Context) (map[string][]string, error)           { return n.held, nil }
func (n node) Get(context.Context, string) (user.User, error)                 { return user.User{}, nil }
func (n node) live(t testing.TB) *resource.Cache {
	t.Helper()
	l := resource.NewCache(n, n, nil)
	if err := l.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// Every audience for every kind of caller (D-AUTH-03), where the permission is
// of one role, and who acts for others, and whose call is audited.
func TestAuthorize(t *testing.T) {
	n := node{held: map[string][]string{"admin": {"admin"}}}
	for p, account := range map[resource.Permission]string{resource.Allow: "allow", resource.Audit: "audit",
		resource.Deny: "deny"} {
		n.held[account] = []string{account}
		n.grants = append(n.grants, resource.Grant{RoleCode: account, ResourceCode: "GET /x", Context: resource.API,
			Permission: p})
	}
	g := auth.Guards{Judge: n.live(t).Judge}
	endpoint := func(a rest.Audience, c rest.Credential) rest.Endpoint {
		return rest.Endpoint{Method: "GET", Path: "/x", Audience: a, Credential: c}
	}
	reserved := endpoint(rest.Admin, rest.Tenant)
	reserved.Reserved = true
	accounts := []string{"plain", "allow", "audit", "deny", "admin"}
	for _, c := range []struct {
		name    string
		e       rest.Endpoint
		in      string // of accounts: y accepted, n refused
		acts    string // of accepted accounts
		audited string
		pauth   bool // accepted with a challenge's token alone
	}{
		{"public", endpoint(rest.Public, rest.NoAuth), "yyyyy", "", "", true},
		{"device", endpoint(rest.DeviceOwner, rest.Device), "yyyyy", "", "", true},
		{"user", endpoint(rest.SelfUser, rest.User), "yyyny", "nyyny", "nnynn", true},
		{"self or admin", endpoint(rest.SelfOrAdmin, rest.Tenant), "yyyny", "nyyny", "nnynn", true},
		{"admin", endpoint(rest.Admin, rest.Tenant), "nyyny", "nyyny", "nnynn", false},
		{"reserved", reserved, "nnnny", "", "nnnnn", false},
		{"unknown", endpoint("everyone", rest.User), "nnnnn", "", "", false},
	} {
		for i, account := range accounts {
			who := rest.Caller{UserID: account, Roles: []string{"admin"}} // a claim counts for nothing
			err := g.Authorize(t.Context(), who, &c.e)
			if in := err == nil; in != (c.in[i] == 'y') || !in && fault.CodeOf(err) != fault.Forbidden {
				t.Errorf("%s as %s: %v", c.name, account, err)
			}
			if c.acts != "" && g.ActsAsAdmin(who, &c.e) != (c.acts[i] == 'y') {
				t.Errorf("%s as %s: acts for others", c.name, account)
			}
			if c.audited != "" && g.Audited(who, &c.e) != (c.audited[i] == 'y') {
				t.Errorf("%s as %s: audited", c.name, account)
			}
		}
		holder := rest.Caller{ChallengeID: "c1"}
		if err := g.Authorize(t.Context(), holder, &c.e); (err == nil) != c.pauth {
			t.Errorf("%s with a challenge's token: %v", c.name, err)
		}
		if g.ActsAsAdmin(holder, &c.e) || g.Audited(holder, &c.e) {
			t.Errorf("%s with a challenge's token acts for others, or is audited", c.name)
		}
		if err := g.Authorize(t.Context(), rest.Caller{}, &c.e); (err == nil) != (c.e.Audience == rest.Public ||
			c.e.Audience == rest.DeviceOwner) {
			t.Errorf("%s as nobody: %v", c.name, err)
		}
	}
	device := endpoint(rest.SelfUser, rest.PAuthOrDevice)
	if err := g.Authorize(t.Context(), rest.Caller{}, &device); err != nil {
		t.Errorf("an answer signed by a device: %v", err)
	}
}

// BenchmarkPermission measures the permission checks of a request: one before the handler, and
// one for the audit of calls. The node has ten thousand holders of roles and a grant on each
// of two hundred endpoints.
func BenchmarkPermission(b *testing.B) {
	n := node{held: map[string][]string{}}
	endpoints := make([]rest.Endpoint, 200)
	for i := range endpoints {
		endpoints[i] = rest.Endpoint{Method: "GET", Path: fmt.Sprintf("/admin/some/endpoint/number-%d", i),
			Audience: rest.Admin, Credential: rest.Tenant}
		for _, role := range []string{"clerk", "auditor"} {
			n.grants = append(n.grants, resource.Grant{RoleCode: role, ResourceCode: endpoints[i].Key(), Context: resource.API,
				Permission: resource.Allow})
		}
	}
	callers := make([]rest.Caller, 10_000)
	for i := range callers {
		callers[i].UserID = fmt.Sprintf("01JD%022d", i)
		n.held["clerk"] = append(n.held["clerk"], callers[i].UserID)
		if i%2 == 0 {
			n.held["auditor"] = append(n.held["auditor"], callers[i].UserID)
		}
	}
	g := auth.Guards{Judge: n.live(b).Judge}
	for name, audience := range map[string]rest.Audience{"admin": rest.Admin, "user": rest.SelfUser} {
		b.Run(name, func(b *testing.B) {
			es := make([]rest.Endpoint, len(endpoints))
			for i, e := range endpoints {
				es[i] = e.For(audience)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				who, e := callers[i*7919%len(callers)], &es[i*31%len(es)]
				if err := g.Authorize(b.Context(), who, e); err != nil {
					b.Fatal(err)
				}
				if g.Audited(who, e) {
					b.Fatal("audited")
				}
			}
		})
	}
}
