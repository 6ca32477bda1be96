package stepup

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

// stored is an audit of some rows.
type stored []audit.Stored

func (r stored) List(_ context.Context, q audit.Query, p page.Query[audit.Place]) (
	out page.Of[audit.Stored], _ error,
) {
	for _, row := range r {
		if row.Action != q.Action || row.At.Before(q.From) {
			continue
		}
		if len(out.Records) == p.Limit {
			out.More = true
			break
		}
		out.Records = append(out.Records, row)
	}
	return out, nil
}

// A rehearsal looks at 1,000 rows and says when there are more.
func TestRehearsedRows(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	p := mfa.Policy{ActionCode: "LOGIN", Name: "p", EntityType: mfa.General, Type: mfa.Common, Required: 1,
		Methods: []mfa.Choice{{Code: "MAIL"}}}
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{p})
	s := &Starter{Messenger: &Messenger{Catalog: func() *mfa.Catalog { return catalog },
		Now: func() time.Time { return now }}}
	for count, more := range map[int]bool{999: false, 1000: false, 1001: true} {
		rows := make(stored, count)
		for i := range rows {
			rows[i].Record = audit.Record{At: now, Action: "LOGIN", UserID: "u", Target: fmt.Sprint(i)}
		}
		x, err := s.Rehearse(t.Context(), rows, audit.By{}, p)
		if storetest.Must(t, err); x.Truncated != more || x.Considered != min(count, 1000) {
			t.Errorf("of %d: %+v", count, x)
		}
	}
}

// D-MFA-14: a policy is applied to the challenges in the audit.
func TestRehearse(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	n := 0
	row := func(ago time.Duration, action, userID, ip, target string) audit.Stored {
		n++
		return audit.Stored{Record: audit.Record{At: now.Add(-ago), Action: action, UserID: userID, IP: ip, Target: target,
			RequestID: fmt.Sprint("r", n)}}
	}
	made := func() string { return id.New(now) }
	twice := made()
	rows := stored{
		row(time.Minute, "LOGIN", "all", "", made()),           // r1
		row(time.Minute, "LOGIN", "all", "", "all"),            // a wrong password
		row(time.Minute, "LOGIN", "", "", "203.0.113.0/32"),    // unknown identifiers
		row(time.Hour, "LOGIN", "phone", "", twice),            // r4
		row(time.Hour, "LOGIN", "phone", "", twice),            // its refusal before
		row(time.Hour, "LOGIN", "phone", "", made()),           // r6
		row(time.Hour, "LOGIN", "gone", "", made()),            // no longer active
		row(time.Hour, "LOGIN", "own", "", made()),             // has a policy of its own
		row(time.Hour, "LOGIN", "all", "203.0.113.9", made()),  // so has the address
		row(25*time.Hour, "LOGIN", "all", "", made()),          // too old
		row(time.Hour, "UPDATE_PASSWORD", "all", "", made()),   // another action
		row(time.Hour, "RESET_PASSWORD", "phone", "", made()),  // r12
		row(time.Minute, "UPDATE_PASSWORD", "own", "", made()), // r13
	}
	policy := func(action string, required int, codes ...string) mfa.Policy {
		p := mfa.Policy{ActionCode: action, Name: "p", EntityType: mfa.General, Type: mfa.Common, Required: required}
		for _, c := range codes {
			p.Methods = append(p.Methods, mfa.Choice{Code: c})
		}
		return p
	}
	of := func(p mfa.Policy, i int64, entity mfa.EntityType, who string) mfa.Policy {
		p.ID, p.EntityType, p.EntityID = i, entity, who
		return p
	}
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{
		of(policy("LOGIN", 1, "SMS", "MAIL"), 1, mfa.General, ""), of(policy("LOGIN", 1, "TOTP"), 2, mfa.UserID, "own"),
		of(policy("LOGIN", 1, "TOTP"), 3, mfa.IP, "203.0.113.9")})
	phone := "+905320000001"
	s := &Starter{Messenger: &Messenger{Catalog: func() *mfa.Catalog { return catalog },
		Now:      func() time.Time { return now },
		Dispatch: &post{channels: map[message.Channel]bool{message.SMS: true, message.MAIL: true}}},
		Actions: challenge.Actions{"RESET_PASSWORD": {Code: "RESET_PASSWORD", Flow: challenge.FlowReset}},
		Accounts: people{"all": {UserID: "all", Phone: phone, Mail: "a@example.com", TOTP: true},
			"own": {UserID: "own", Phone: phone}, "phone": {UserID: "phone", Phone: phone}}}
	numbers := policy("LOGIN", 1, "SMS", "MAIL")
	numbers.NumberMatching = true
	for name, c := range map[string]struct {
		p    mfa.Policy
		want string // considered, changed, stopped, users: examples
	}{
		"the same":                {policy("LOGIN", 1, "SMS", "MAIL"), "6 0 0 0:"},
		"more of them":            {policy("LOGIN", 2, "SMS", "MAIL"), "6 4 2 3: r4 r6"},
		"another one":             {policy("LOGIN", 1, "TOTP", "SMS"), "6 4 0 3: r1 r4 r6 r7"},
		"numbers":                 {numbers, "6 4 0 3: r1 r4 r6 r7"},
		"in place of the default": {policy("UPDATE_PASSWORD", 1, "MAIL"), "2 2 1 2: r13"},
		"what must be proved":     {policy("RESET_PASSWORD", 1, "SMS", "MAIL"), "1 0 0 0:"},
		"an action without rows":  {policy("VERIFY_EMAIL", 1, "MAIL"), "0 0 0 0:"},
	} {
		x := storetest.Value(s.Rehearse(t.Context(), rows, audit.By{}, c.p))(t)
		got := fmt.Sprintf("%d %d %d %d:", x.Considered, x.Changed, x.Stopped, x.Users)
		for _, e := range x.Examples {
			got += " " + e.RequestID
		}
		if got != c.want || x.Truncated {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	passkey := policy("LOGIN", 1, "PUSH")
	passkey.PhishingResistant = true
	over, alone := passkey, policy("LOGIN", 2, "SMS", "TOTP")
	over.ExpireAt, alone.PasskeyAlone = 1, true
	s.Owners = func(context.Context) ([]challenge.Owners, error) {
		owners := func(n int, a challenge.Account) challenge.Owners { return challenge.Owners{Account: a, Count: n} }
		return []challenge.Owners{owners(900, challenge.Account{Phone: "+", Mail: "@"}),
			owners(90, challenge.Account{Mail: "@"}), owners(7, challenge.Account{Phone: "+", Push: true}),
			owners(2, challenge.Account{Phone: "+", Push: true, Passkeys: true}), owners(1, challenge.Account{})}, nil
	}
	for name, c := range map[string]struct {
		p    mfa.Policy
		by   string
		want string // accounts, lost, you
	}{
		"as it is":                     {policy("LOGIN", 1, "MAIL", "SMS"), "phone", "1000 0 false"},
		"one of two":                   {policy("LOGIN", 1, "SMS"), "phone", "1000 90 false"},
		"both":                         {policy("LOGIN", 2, "SMS", "MAIL"), "phone", "1000 99 true"},
		"a passkey":                    {passkey, "all", "1000 997 true"},
		"a passkey, once":              {over, "all", "1000 0 false"},
		"a passkey alone":              {alone, "own", "1000 997 false"}, // who has a policy of its own
		"in place of the default":      {policy("UPDATE_PASSWORD", 1, "SMS"), "phone", "1000 90 false"},
		"by a service, which has none": {passkey, "service:x", "1000 997 false"},
	} {
		x, err := s.Rehearse(t.Context(), stored{}, audit.By{UserID: c.by}, c.p)
		if got := fmt.Sprint(x.Accounts, x.Lost, x.You); err != nil || got != c.want {
			t.Errorf("%s: %s, want %s; %v", name, got, c.want, err)
		}
	}
	change := catalog.PlanOf(policy(mfa.DeviceAdd, 1, "SMS"))
	for action, want := range map[string]bool{mfa.DeviceAdd: false, "LOGIN": true} {
		if s.completes(action, challenge.Account{Phone: "+", Passkeys: true}, change) != want {
			t.Errorf("%s without the passkey: %t", action, !want)
		}
	}
}

// A rehearsal counts the remembered clients that count now and would not under the policy: for its days, or because it
// does not list their method.
func TestForgottenClients(t *testing.T) {
	const day = 24 * time.Hour
	now := time.UnixMilli(1_700_000_000_000)
	client := func(m challenge.Name, age, left time.Duration) remembered.Client {
		return remembered.Client{UserID: "all", Action: "LOGIN", Method: m, CV: 3, CreatedAt: now.Add(-age),
			ExpiresAt: now.Add(left)}
	}
	s := remembering(t, 10, 1, map[string][]remembered.Client{"LOGIN": {client("SMS", day, 9*day),
		client("SMS", 6*day, 4*day), client("MAIL", day, 9*day), client("SMS", 10*day, 0)}})
	for _, c := range []struct {
		days    int
		methods []string
		want    int
	}{{10, []string{"SMS", "MAIL"}, 0}, {0, []string{"SMS", "MAIL"}, 3}, {5, []string{"MAIL", "SMS"}, 1},
		{10, []string{"MAIL"}, 2}, {5, []string{"MAIL"}, 2}, {5, []string{"SMS"}, 2}} {
		p := mfa.Policy{ActionCode: "LOGIN", Name: "p", EntityType: mfa.General, Type: mfa.Common, Required: 1,
			RememberDays: c.days}
		for _, m := range c.methods {
			p.Methods = append(p.Methods, mfa.Choice{Code: m})
		}
		if x, err := s.Rehearse(t.Context(), stored{}, audit.By{}, p); err != nil || x.Forgotten != c.want {
			t.Errorf("%d days, %v: %+v, %v", c.days, c.methods, x, err)
		}
	}
}
