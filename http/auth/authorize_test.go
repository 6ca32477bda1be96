package auth_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
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
	storetest.Must(t, l.Reload(t.Context()))
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
				storetest.Must(b, g.Authorize(b.Context(), who, e))
				if g.Audited(who, e) {
					b.Fatal("audited")
				}
			}
		})
	}
}

// A write about a user who holds a permission that the caller lacks is refused, and one
// about certain matters of the own account; of a list when every row would be. A user at
// an endpoint of the own records is not bound (D-AUTH-03).
func TestMayName(t *testing.T) {
	type request struct {
		Users rest.Strings `json:"users"`
		One   *string      `json:"one"`
	}
	n := node{held: map[string][]string{"admin": {"boss", "chief"}, "clerk": {"clerk"}, "lead": {"lead"}}}
	for role, keys := range map[string][]string{"clerk": {"POST /x"}, "lead": {"POST /x", "POST /y"}} {
		for _, key := range keys {
			n.grants = append(n.grants, resource.Grant{RoleCode: role, ResourceCode: key, Context: resource.API,
				Permission: resource.Allow})
		}
	}
	live := n.live(t)
	g := auth.Guards{Judge: live.Judge, MayWrite: live.MayWrite}
	base := rest.Post("/x", "", rest.Tenant,
		func(context.Context, rest.Caller, request) (rest.None, error) { return rest.None{}, nil })
	var found error
	lookup := func(context.Context, rest.Caller, request) (rest.Named, error) {
		return rest.Named{Users: []string{"boss"}, Matter: rest.General}, found
	}
	one, rows := base.Names(rest.Contact, "users", "one"), base.Names(rest.General, "users").Rows()
	for _, c := range []struct {
		caller, users, one string
		e                  rest.Endpoint
		refused            bool
	}{
		{"clerk", "", "", one, false},
		{"clerk", "ada", "", one, false},
		{"clerk", "boss", "", one, true},
		{"clerk", "ada boss", "", one, true},
		{"clerk", "boss ada", "", one, true},
		{"clerk", "ada", "boss", one, true},
		{"clerk", "lead", "", one, true},
		{"lead", "clerk", "", one, false},
		{"boss", "clerk lead chief ada nobody", "", one, false},
		{"boss", "boss", "", one, true}, // contact data of the own account
		{"boss", "ada", "boss", one, true},
		{"clerk", "", "clerk", one, true},
		{"clerk", "boss ada", "", rows, false},
		{"clerk", "ada boss", "", rows, false},
		{"clerk", "boss lead", "", rows, true},
		{"clerk", "boss clerk", "", rows, false},
		{"clerk", "", "", rows, false},
		{"clerk", "boss", "", base, false},
		{"clerk", "boss", "", base.NamesNoUser("of the test"), false},
		{"ada", "boss", "", one.For(rest.SelfOrAdmin), false}, // the handler knows own records only
		{"clerk", "boss", "", one.For(rest.SelfOrAdmin), true},
	} {
		in := &request{Users: strings.Fields(c.users)}
		if c.one != "" {
			in.One = &c.one
		}
		err := g.MayName(t.Context(), rest.Caller{UserID: c.caller}, &c.e, in)
		if c.refused != (fault.CodeOf(err) == fault.Forbidden) || !c.refused && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	wallet := rest.Caller{Service: "wallet", ServiceRole: "clerk"} // has no account to compare (D-INT-01)
	if err := g.MayName(t.Context(), wallet, &one, &request{Users: rest.Strings{"boss"}}); err != nil {
		t.Errorf("a service client: %v", err)
	}
	owned, clerk := rest.NamesBy(base, lookup), rest.Caller{UserID: "clerk"}
	for _, c := range []struct{ found, want error }{
		{nil, fault.New(fault.Forbidden, "")},
		{fault.New(fault.RecordNotFound, "there is no such record"), nil},
		{fault.New(fault.Unavailable, "away"), fault.New(fault.Unavailable, "")},
		{fmt.Errorf("broken"), fmt.Errorf("broken")},
	} {
		found = c.found
		if err := g.MayName(t.Context(), clerk, &owned, &request{}); fault.CodeOf(err) != fault.CodeOf(c.want) {
			t.Errorf("with %v found: %v, want %v", c.found, err, c.want)
		}
	}
}
