package app

import (
	"testing"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/http/rest"
)

// Another process makes an administrator, like "castellan user add --role admin", and a login follows at once.
// Its first request has the role, on a node that was not notified yet. A session from before waits for the
// feed.
func TestRoleWorksAtOnce(t *testing.T) {
	s := assembled(t)
	command, err := Open(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer command.Close()
	u := user.New(id.New(time.Now()), time.Now())
	u.Phone, u.Email, u.Roles = "+905320000099", "root@example.com", []string{user.RoleAdmin}
	record := audit.Record{Action: "USER_ADD", Target: u.ID, UserID: u.ID}
	if err := command.Operate(t.Context(), change.Users, record, user.Add{User: u}); err != nil {
		t.Fatal(err)
	}
	guards := s.guards()
	admins := rest.Endpoint{Method: "GET", Path: "/admin/audit", Audience: rest.Admin}
	own := rest.Endpoint{Method: "GET", Path: "/user/user-profile", Audience: rest.SelfOrAdmin}
	before := rest.Caller{UserID: u.ID, SessionID: id.New(time.Now().Add(-time.Hour)), Roles: u.AllRoles()}
	now := before
	now.SessionID = id.New(time.Now())
	nobody := rest.Caller{UserID: "u2", SessionID: now.SessionID, Roles: []string{user.RoleUser}}

	if err := guards.Authorize(t.Context(), before, &admins); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("a session that is older than what the node knows: %v", err)
	}
	mark := s.feed.Mark()
	if err := guards.Authorize(t.Context(), nobody, &own); err != nil || s.feed.Mark() != mark {
		t.Errorf("a user who claims no more had the feed read, %v", err)
	}
	if err := guards.Authorize(t.Context(), now, &own); err != nil || !guards.ActsAsAdmin(now, &own) {
		t.Errorf("the session acts as a user: %v", err)
	}
	if err := guards.Authorize(t.Context(), now, &admins); err != nil {
		t.Errorf("the first request of an administrator: %v", err)
	}
	// A claimed role gives no access.
	nobody.Roles = []string{user.RoleUser, user.RoleAdmin}
	if err := guards.Authorize(t.Context(), nobody, &admins); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("an account without the role: %v", err)
	}
}
