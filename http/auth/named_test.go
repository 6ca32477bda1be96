package auth_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/permit/resource"
	"castellan/http/auth"
	"castellan/http/rest"
)

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
