package stepup

import (
	"context"
	"slices"
	"testing"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/mfa"
	"castellan/domain/delivery/message"
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
		_, offer, err := s.offer(now, &challenge.StartRequest{Action: c.action, Account: account,
			Starter: challenge.Starter{IP: c.ip}, Proven: c.action != "RESET_PASSWORD"}, keys{})
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
