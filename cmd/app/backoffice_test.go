package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/permit/cronkey"
	"castellan/domain/proof/dpop"
	"castellan/http/rest"
)

// A key change by the command line reaches a running node over the feed, which is read four times a second (D-AUTH-07).
func TestNodesFollowCronKeys(t *testing.T) {
	both(t, func(t *testing.T, cfg config.Config) {
		ctx := t.Context()
		open := func() *Deployment {
			t.Helper()
			v := storetest.Value(Open(ctx, cfg))(t)
			t.Cleanup(func() { v.Close() })
			return v
		}
		v := open()
		s := &service{Deployment: v, cfg: cfg, metrics: metrics.New("", ""), proofs: &dpop.Verifier{}}
		storetest.Must(t, errors.Join(s.database(), s.backOffice()))
		command := open() // another process, with its own key cache
		issuer := cronkey.Issuer{Changes: command.Changes(change.CronKeys), Ring: command.Ring}
		knows := func(header string) bool {
			t.Helper()
			storetest.Must(t, s.feed.Poll(ctx))
			name, ok := s.crons.Client(header)
			return ok && name == "rates"
		}
		header, err := issuer.Add(ctx, audit.Operator, "rates")
		if err != nil || !knows(header) {
			t.Fatalf("a key that was added is not taken: %v", err)
		}
		if err := issuer.Remove(ctx, audit.Operator, "rates"); err != nil || knows(header) {
			t.Errorf("a key that was removed is taken: %v", err)
		}
	})
}

// Another process creates an administrator, as "castellan user add --role admin" does, and a login follows at once. Its
// first request has the role, on a node that has not received the change yet. An older session waits for the feed.
func TestRoleWorksAtOnce(t *testing.T) {
	s := assembled(t)
	command := storetest.Value(Open(t.Context(), s.cfg))(t)
	defer command.Close()
	u := user.New(id.New(time.Now()), time.Now())
	u.Phone, u.Email, u.Roles = "+905320000099", "root@example.com", []string{user.RoleAdmin}
	record := audit.Record{Action: "USER_ADD", Target: u.ID, UserID: u.ID}
	storetest.Must(t, command.Operate(t.Context(), change.Users, record, user.Add{User: u}))
	guards := s.guards()
	admins := rest.Endpoint{Method: "GET", Path: "/admin/audit", Audience: rest.Admin}
	own := rest.Endpoint{Method: "GET", Path: "/user/user-profile", Audience: rest.SelfOrAdmin}
	before := rest.Caller{UserID: u.ID, SessionID: id.New(time.Now().Add(-time.Hour)), Roles: u.AllRoles()}
	now := before
	now.SessionID = id.New(time.Now())
	customer := rest.Caller{UserID: "u2", SessionID: now.SessionID, Roles: []string{user.RoleUser}}

	if err := guards.Authorize(t.Context(), before, &admins); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("a session that is older than what the node knows: %v", err)
	}
	mark := s.feed.Mark()
	if err := guards.Authorize(t.Context(), customer, &own); err != nil || s.feed.Mark() != mark {
		t.Errorf("a user who claims no more had the feed read, %v", err)
	}
	if err := guards.Authorize(t.Context(), now, &own); err != nil || !guards.ActsAsAdmin(now, &own) {
		t.Errorf("the session acts as a user: %v", err)
	}
	if err := guards.Authorize(t.Context(), now, &admins); err != nil {
		t.Errorf("the first request of an administrator: %v", err)
	}
	// A claim grants nothing.
	customer.Roles = []string{user.RoleUser, user.RoleAdmin}
	if err := guards.Authorize(t.Context(), customer, &admins); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("an account without the role: %v", err)
	}
}

// The configuration has exactly the built-in address rules, under the domain's names.
func TestAddressRuleNames(t *testing.T) {
	for _, family := range address.Families() {
		c := storetest.Value(config.Load("", []string{"CASTELLAN_ADDRESSBOOK_ADDRESS_RULES=NEW=" + family}))(t)
		rules, err := address.NewRules(c.AddressBook.AddressRules)
		if err != nil || rules.Fits("NEW", "neither-of-them") {
			t.Errorf("%s: %v", family, err)
		}
	}
	_, err := config.Load("", []string{"CASTELLAN_ADDRESSBOOK_ADDRESS_RULES=NEW=none"})
	storetest.Fails(t, err, "one of "+strings.Join(address.Families(), ", ")+" nor")
}
