package permit_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
)

func grants(t *testing.T, s resource.Store, _ commit.Committer) {
	ctx := t.Context()
	a := addType(t, s, resource.API, "GET")
	x, y, r, q := addResource(t, s, a, "GET /x"), addResource(t, s, a, "GET /y"), addRole(t, s, "r"), addRole(t, s, "q")
	first := storetest.Value(s.SetGrant(ctx, r, x, resource.Allow, now))(t)
	second := storetest.Value(s.SetGrant(ctx, q, y, resource.Audit, now))(t)
	again := storetest.Value(s.SetGrant(ctx, r, x, resource.Deny, now.Add(time.Second)))(t)
	if first == second || again != first {
		t.Errorf("ids %d, %d, then %d", first, second, again)
	}
	gs := storetest.Value(s.Grants(ctx, resource.GrantQuery{}))(t)
	line := func(id, roleID int64, role string, resourceID int64, code string, p resource.Permission,
		at time.Time) resource.Grant {
		return resource.Grant{ID: id, RoleID: roleID, RoleCode: role, ResourceID: resourceID, ResourceCode: code,
			Context: resource.API, Permission: p, CreatedAt: at}
	}
	both := []resource.Grant{line(first, r, "r", x, "GET /x", resource.Deny, now.Add(time.Second)),
		line(second, q, "q", y, "GET /y", resource.Audit, now)}
	storetest.Same(t, gs, both)
	for _, c := range []struct {
		q    resource.GrantQuery
		want []resource.Grant
	}{{resource.GrantQuery{RoleID: &r}, both[:1]}, {resource.GrantQuery{ResourceID: &y}, both[1:]},
		{resource.GrantQuery{RoleID: &r, ResourceID: &y}, []resource.Grant{}}} {
		got := storetest.Value(s.Grants(ctx, c.q))(t)
		storetest.Same(t, got, c.want)
	}
	storetest.Must(t, s.RemoveGrant(ctx, r, x, now.Add(time.Minute)))
	storetest.Wants(t, s.RemoveGrant(ctx, r, x, now), fault.RecordNotFound)
	gs = storetest.Value(s.Grants(ctx, resource.GrantQuery{}))(t)
	storetest.Same(t, gs, []resource.Grant{line(second, q, "q", y, "GET /y", resource.Audit, now)})

	// Every change wrote its line, the refused one none.
	var lines string
	for _, e := range grantLog(t, s) {
		lines += fmt.Sprintf("%v %v %s %d\n", e.RoleID == r, e.ResourceID == x, e.Permission,
			e.CreatedAt.Sub(now)/time.Second)
	}
	if want := "true true REVOKE 60\ntrue true DENY 1\nfalse false AUDIT 0\ntrue true ALLOW 0\n"; lines != want {
		t.Errorf("log\n%s", lines)
	}
}

func grantsUnderRace(t *testing.T, s resource.Store, _ commit.Committer) {
	ctx := t.Context()
	x, r := addResource(t, s, addType(t, s, resource.API, "GET"), "GET /x"), addRole(t, s, "r")
	if n := storetest.Race(t, racers, "",
		func(int) error { return storetest.Err(s.SetGrant(ctx, r, x, resource.Allow, now)) }); n != racers {
		t.Errorf("%d of %d were set", n, racers)
	}
	storetest.Equal(t, len(storetest.Value(s.Grants(ctx, resource.GrantQuery{}))(t)), 1)
	if n := storetest.Race(t, racers, fault.RecordNotFound,
		func(int) error { return s.RemoveGrant(ctx, r, x, now) }); n != 1 {
		t.Errorf("%d of %d took one grant away", n, racers)
	}
	storetest.Equal(t, len(grantLog(t, s)), racers+1)
}

func grantLog(t *testing.T, s resource.Store) []resource.LogEntry {
	t.Helper()
	all := storetest.Value(s.Log(t.Context(), resource.LogQuery{}, page.Query[resource.LogPlace]{}))(t)
	return all.Records
}

func roleHeldByAnother(t *testing.T, s resource.Store, c commit.Committer) {
	ctx := t.Context()
	held := func(except string, demo bool) bool {
		t.Helper()
		return storetest.Value(s.HeldByAnother(ctx, "admin", except, demo))(t)
	}
	a, b, d := usertest.Sample(1), usertest.Sample(2), usertest.Sample(3)
	a.Roles, b.Roles, d.Roles = []string{"admin"}, []string{"admin", "other"}, []string{"admin"}
	b.Status, d.Demo = user.Blocked, true
	storetest.Must(t, c.Commit(ctx, a))
	if held(a.ID, true) || !held("somebody", false) {
		t.Error("with one administrator")
	}
	storetest.Must(t, c.Commit(ctx, b))
	if held(a.ID, true) {
		t.Error("a blocked account counts")
	}
	storetest.Must(t, c.Commit(ctx, d))
	if !held(a.ID, true) || held(a.ID, false) {
		t.Error("a demonstration account counts, or does not, where it should not, or should")
	}
}

// The members of roles are listed newest first, also of one instant.
func roleMembers(t *testing.T, s resource.Store, c commit.Committer) {
	ctx := t.Context()
	give := func(id string, role string, sec int) resource.Member {
		at := now.Add(time.Duration(sec) * time.Second)
		storetest.Must(t, c.Commit(ctx, user.Grant{UserID: id, Role: role, At: at}))
		return resource.Member{UserID: id, RoleCode: role, CreatedAt: at}
	}
	a, b, d, e := give("u1", "r", 0), give("u2", "r", 5), give("u1", "q", 5), give("u3", "q", 9)
	for _, f := range []struct {
		q    resource.MemberQuery
		want []resource.Member
	}{
		{resource.MemberQuery{}, []resource.Member{e, b, d, a}},
		{resource.MemberQuery{UserID: "u1"}, []resource.Member{d, a}},
		{resource.MemberQuery{RoleCode: "r"}, []resource.Member{b, a}},
		{resource.MemberQuery{UserID: "u1", RoleCode: "r"}, []resource.Member{a}},
		{resource.MemberQuery{UserID: "nobody"}, nil},
	} {
		pagetest.Check(t, s.Members, f.q, f.want)
	}
}
