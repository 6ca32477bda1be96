package stepup

import (
	"context"
	"slices"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/fault"
)

// people holds accounts by their id.
type people map[string]challenge.Account

func (p people) Account(_ context.Context, id string) (challenge.Account, error) {
	a, ok := p[id]
	if !ok {
		return a, fault.New(fault.RecordNotFound, "there is no such user")
	}
	return a, nil
}

// An explanation shows the result of a start: the same methods, or why they are too few.
func TestExplain(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	policy := func(id int64, action string, entity mfa.EntityType, entityID string, required int,
		codes ...string) mfa.Policy {
		p := mfa.Policy{ID: id, ActionCode: action, Name: "p", EntityType: entity, EntityID: entityID, Type: mfa.Common,
			Required: required}
		for _, c := range codes {
			p.Methods = append(p.Methods, mfa.Choice{Code: c})
		}
		return p
	}
	old := policy(4, "LOGIN", mfa.General, "", 1, "MAIL")
	old.ExpireAt = now.UnixMilli()
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{
		policy(1, "TOTP_SETUP", mfa.General, "", 2, "SMS", "MAIL", "TOTP"),
		policy(2, "TOTP_SETUP", mfa.UserID, "all", 1, "TOTP"),
		policy(3, "TOTP_SETUP", mfa.IP, "203.0.113.9", 1, "SMS"), old,
		policy(5, "RESET_PASSWORD", mfa.UserID, "all", 3, "TOTP", "SMS", "MAIL"),
	})
	phone := "+905320000001"
	m := &Messenger{Catalog: func() *mfa.Catalog { return catalog }, Now: func() time.Time { return now }}
	s := &Starter{Messenger: m, Actions: challenge.Actions{"PAYOUT": {Code: "PAYOUT"},
		"RESET_PASSWORD": {Code: "RESET_PASSWORD", Flow: challenge.FlowReset}},
		Accounts: people{"all": {UserID: "all", Phone: phone, Mail: "a@example.com", TOTP: true},
			"phone": {UserID: "phone", Phone: phone}, "mail": {UserID: "mail", Mail: "a@example.com"}}}
	for _, c := range []struct {
		name, action, user, ip string
		noMail                 bool
		policy                 int64
		required               int
		offered, missing       []challenge.Name
		verdicts               []mfa.Verdict
	}{
		{name: "built in", action: "UPDATE_PASSWORD", user: "phone", required: 1, offered: []challenge.Name{"SMS"},
			missing: []challenge.Name{"TOTP", "PUSH", "MAIL"}},
		{name: "no particular user", action: "UPDATE_PASSWORD", required: 1,
			offered: []challenge.Name{"TOTP", "PUSH", "SMS", "MAIL"}},
		{name: "nothing sends mail", action: "UPDATE_PASSWORD", noMail: true, required: 1,
			offered: []challenge.Name{"TOTP", "PUSH", "SMS"}, missing: []challenge.Name{"MAIL"}},
		{name: "general", action: "TOTP_SETUP", user: "phone", policy: 1, required: 2, offered: []challenge.Name{"SMS"},
			missing: []challenge.Name{"MAIL", "TOTP"}, verdicts: []mfa.Verdict{mfa.OtherEntity, mfa.OtherEntity, mfa.Chosen}},
		{name: "of the address", action: "TOTP_SETUP", user: "phone", ip: "::ffff:203.0.113.9", policy: 3, required: 1,
			offered: []challenge.Name{"SMS"}, verdicts: []mfa.Verdict{mfa.OtherEntity, mfa.Chosen, mfa.Outranked}},
		{name: "of the user", action: "TOTP_SETUP", user: "all", ip: "203.0.113.9", policy: 2, required: 1,
			offered: []challenge.Name{"TOTP"}, verdicts: []mfa.Verdict{mfa.Chosen, mfa.Outranked, mfa.Outranked}},
		{name: "expired", action: "LOGIN", user: "mail", required: 1, offered: []challenge.Name{"MAIL"},
			missing: []challenge.Name{"TOTP", "PUSH", "SMS"}, verdicts: []mfa.Verdict{mfa.Expired}},
		{name: "without a proof, no particular user", action: "RESET_PASSWORD", user: "all", required: 2,
			offered: []challenge.Name{"SMS", "MAIL"}, verdicts: []mfa.Verdict{mfa.OtherEntity}},
		{name: "mandatory", action: "VERIFY_EMAIL", user: "phone", required: 1, missing: []challenge.Name{"MAIL"}},
		{name: "performed, not listed", action: "PAYOUT", user: "phone", required: 1, offered: []challenge.Name{"SMS"},
			missing: []challenge.Name{"TOTP", "PUSH", "MAIL"}},
	} {
		s.Dispatch = &post{channels: map[message.Channel]bool{message.SMS: true, message.MAIL: !c.noMail}}
		x, err := s.Explain(t.Context(), c.action, c.user, c.ip)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var verdicts []mfa.Verdict
		for _, v := range x.Candidates {
			verdicts = append(verdicts, v.Verdict)
		}
		if x.Plan.PolicyID != c.policy || x.Plan.Required != c.required || !slices.Equal(x.Offered, c.offered) ||
			!slices.Equal(x.Missing, c.missing) || !slices.Equal(verdicts, c.verdicts) {
			t.Errorf("%s: policy %d, required %d, offered %v, missing %v, verdicts %v", c.name, x.Plan.PolicyID, x.Plan.Required,
				x.Offered, x.Missing, verdicts)
		}
		if c.user == "" {
			continue
		}
		account, _ := s.Accounts.Account(t.Context(), c.user)
		r := challenge.StartRequest{Action: c.action, Account: account, Starter: challenge.Starter{IP: c.ip},
			Proven: c.action != "RESET_PASSWORD"}
		plan := s.plan(now, &r)
		offer, err := s.offer(r, plan, keys{})
		enough := len(x.Offered) >= x.Plan.Required
		if (err == nil) != enough {
			t.Errorf("%s: a start says %v", c.name, err)
		}
		for i, m := range offer {
			if m.Name != x.Offered[i] {
				t.Errorf("%s: a start offers %+v, the explanation %v", c.name, offer, x.Offered)
				break
			}
		}
	}
	for _, c := range []struct{ action, user string }{{"NO_SUCH_ACTION", ""}, {"LOGIN", "nobody"}} {
		if _, err := s.Explain(t.Context(), c.action, c.user, ""); fault.CodeOf(err) != fault.RecordNotFound {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// A method that the action must prove is missing even if it has no configuration.
func TestExplainNamesUnconfiguredMethods(t *testing.T) {
	var methods []mfa.Method
	for _, m := range mfa.SeedMethods() {
		if m.Code != mfa.MAIL {
			methods = append(methods, m)
		}
	}
	catalog := mfa.NewCatalog(methods, mfa.SeedActions(), nil)
	s := &Starter{Messenger: &Messenger{Catalog: func() *mfa.Catalog { return catalog }, Now: time.Now,
		Dispatch: &post{channels: map[message.Channel]bool{message.SMS: true, message.MAIL: true}}},
		Actions:  challenge.Actions{mfa.Register: {Code: mfa.Register, Flow: challenge.FlowRegister}},
		Accounts: people{"phone": {UserID: "phone", Phone: "+905320000001"}}}
	x, err := s.Explain(t.Context(), mfa.Register, "phone", "")
	if err != nil || !slices.Equal(x.Offered, []challenge.Name{"SMS"}) ||
		!slices.Equal(x.Missing, []challenge.Name{"MAIL"}) {
		t.Errorf("offered %v, missing %v, %v", x.Offered, x.Missing, err)
	}
}

// listed are remembered clients by their account, or by their action.
type listed struct {
	remembered.Store
	rows map[string][]remembered.Client
}

func (l listed) List(_ context.Context, userID string, _ time.Time, _ int) ([]remembered.Client, error) {
	return l.rows[userID], nil
}

func (l listed) Of(_ context.Context, action string, _ time.Time, _ int) ([]remembered.Client, error) {
	return l.rows[action], nil
}

// remembering is a starter whose LOGIN policy lists SMS and MAIL and remembers for some days.
func remembering(t *testing.T, days, required int, rows map[string][]remembered.Client) *Starter {
	p := portsOf(t, mfa.Policy{ID: 1, ActionCode: "LOGIN", Name: "p", EntityType: mfa.General, Type: mfa.Common,
		Required: required, RememberDays: days, Methods: []mfa.Choice{{Code: "SMS"}, {Code: "MAIL"}}})
	p.Starter.Remembered = listed{rows: rows}
	return p.Starter
}

// An explanation counts the clients whose key would complete a method of the start.
func TestExplainCountsRememberedClients(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	counts := remembered.Client{Action: "LOGIN", Method: challenge.SMS, CV: 3, CreatedAt: now.Add(-time.Hour),
		ExpiresAt: now.Add(time.Hour)}
	other, expired, notOffered := counts, counts, counts
	other.Action, expired.ExpiresAt, notOffered.Method = "UPDATE_PASSWORD", now, challenge.TOTP
	mail := counts
	mail.Method = challenge.MAIL
	rows := map[string][]remembered.Client{"all": {counts, other, expired, notOffered, mail}, "phone": {counts, mail}}
	s := remembering(t, 10, 2, rows)
	s.Accounts = people{"all": {UserID: "all", Phone: "+905320000001", Mail: "a@example.com"},
		"phone": {UserID: "phone", Phone: "+905320000001"}}
	for userID, want := range map[string]int{"all": 2, "phone": 1, "": 0} {
		x, err := s.Explain(t.Context(), "LOGIN", userID, "")
		if err != nil || x.Remembered != want {
			t.Errorf("%q: %d, want %d, %v", userID, x.Remembered, want, err)
		}
	}
	for name, next := range map[string]*Starter{"no store": remembering(t, 10, 2, rows),
		"a policy that remembers nothing": remembering(t, 0, 2, rows)} {
		next.Accounts = s.Accounts
		if name == "no store" {
			next.Remembered = nil
		}
		if x, err := next.Explain(t.Context(), "LOGIN", "all", ""); err != nil || x.Remembered != 0 {
			t.Errorf("%s: %d, %v", name, x.Remembered, err)
		}
	}
}
