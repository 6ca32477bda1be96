package stepup

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/storetest"
)

func login(a challenge.Account) challenge.StartRequest {
	return challenge.StartRequest{Action: "LOGIN", Account: a, Proven: true, Command: []byte("command"),
		Starter: challenge.Starter{IP: "203.0.113.9"}}
}

// A start commits the challenge with its codes, its command and the writes of its caller, and then sends the codes.
func TestStartCommitsChallengeWithItsCodes(t *testing.T) {
	p := newPorts(t, 2, "SMS", "MAIL", "TOTP")
	p.grant = &Grant{Send: []bool{true, true}, Supersede: []string{"old"}}
	r := login(alice())
	r.Brief, r.With = "1 BTC", []commit.Write{commit.Unflushed{}}
	r.Bind = func(made challenge.Challenge) []commit.Write {
		return []commit.Write{challenge.Supersede{ID: "bound " + made.ID}}
	}
	got := storetest.Value(p.Start(t.Context(), r))(t)
	c := got.Challenge
	ms := p.now.UnixMilli()
	if c.UserID != "u1" || c.Subject != "u1" || c.Kind != challenge.Real || c.Action != "LOGIN" ||
		c.Flow != challenge.FlowLogin || c.CreatedAt != ms || c.ExpiresAt != ms+600_000 || c.Version != 1 || c.CV != 3 ||
		c.SV != 4 || !c.Proven || c.Required != 2 || c.PolicyID != 7 || !c.Commanded || c.Brief != "1 BTC" ||
		c.State != challenge.Pending || c.IntentDigest == "" || c.Passkeys {
		t.Errorf("%+v", c)
	}
	for i, want := range []challenge.Method{
		{Name: challenge.SMS, LifetimeMs: 120_000, RenewMs: 60_000, ExpiresAt: ms + 120_000, MadeAt: ms,
			Hint: "+90********01"},
		{Name: challenge.MAIL, LifetimeMs: 120_000, RenewMs: 60_000, ExpiresAt: ms + 120_000, MadeAt: ms,
			Hint: "a***@example.com"},
		{Name: challenge.TOTP, LifetimeMs: 600_000, ExpiresAt: ms + 600_000},
	} {
		m := c.Methods[i]
		if m.ID == "" || (m.Digest.Sum != nil) != m.Name.Sent() {
			t.Errorf("%+v", m)
		}
		want.ID, want.Digest, want.Template = m.ID, m.Digest, m.Template
		storetest.Same(t, m, want)
	}
	if got.PAuth != "token of "+c.ID+" until "+p.now.Add(12*time.Minute).UTC().Format(time.TimeOnly) ||
		!got.ExpiresAt.Equal(p.now.Add(12*time.Minute)) || got.Result != nil || got.WebAuthn != nil {
		t.Errorf("%+v", got)
	}
	if len(p.commits) != 1 || len(p.primed) != 1 || p.primed[0].ID != c.ID || p.primed[0].Version != 1 {
		t.Fatalf("%d commits, %d primed", len(p.commits), len(p.primed))
	}
	writes := p.commits[0]
	insert := each[challenge.Insert](writes)
	plain, err := p.m.Ring.Open(insert[0].Command, challenge.CommandData(c.ID))
	if err != nil || string(plain) != "command" || insert[0].ID != c.ID {
		t.Errorf("%+v, %s, %v", insert, plain, err)
	}
	storetest.Same(t, each[commit.Guard](writes), []commit.Guard{{On: commit.UserCredentials, Key: "u1", Version: 3}})
	storetest.Same(t, each[challenge.Supersede](writes),
		[]challenge.Supersede{{ID: "old"}, {ID: "bound " + c.ID}})
	if len(each[commit.Unflushed](writes)) != 1 || !slices.Contains(p.calls, "Refresh old") {
		t.Errorf("%v, %v", writes, p.calls)
	}
	letters := each[outbox.Add](writes)
	if len(letters) != 2 || len(p.post.rows) != 2 {
		t.Fatalf("%d letters, %d are sent", len(letters), len(p.post.rows))
	}
	for i, l := range letters {
		m := c.Methods[i]
		text := p.opened(l.Message)
		sum := p.m.Ring.Hash("otp", c.ID, m.ID, text.Code)
		if l.ID != c.ID+"."+m.ID+".0" || l.UserID != "u1" || l.State != outbox.Queued || !l.Proven || l.Uncounted ||
			l.Channel != message.Channel(m.Name) || l.Prefix != "203.0.113.9/32" || (l.Dial == "90") != (i == 0) ||
			!l.LeaseUntil.Equal(p.now.Add(30*time.Second)) || !l.CreatedAt.Equal(p.now) ||
			!l.ExpiresAt.Equal(p.now.Add(2*time.Minute)) || text.Language != "tr" || text.To != []string{phoneA, mailA}[i] ||
			string(sum.Sum) != string(m.Digest.Sum) || p.post.texts[i].Code != text.Code {
			t.Errorf("%+v, %+v", l, text)
		}
	}
	if !strings.Contains(p.post.texts[0].Text, "1 BTC") || !strings.Contains(p.post.texts[0].Text, "2 dakika") {
		t.Error(p.post.texts[0].Text)
	}
	if r := p.reserved; r.ChallengeID != c.ID || r.Action != "LOGIN" || r.ExpiresAt != c.ExpiresAt || r.MaxOpen != 3 ||
		r.Caps != p.m.Config.Caps || r.Push != nil || len(r.Sendings) != 2 || !r.Sendings[0].Proven {
		t.Errorf("%+v", r)
	}
}

// A start without a proof reveals no mail address, uses no rule of one user and sends no code that is held back.
func TestStartWithoutProof(t *testing.T) {
	p := portsOf(t, mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1,
		Methods: []mfa.Choice{{Code: "SMS"}, {Code: "MAIL"}}},
		mfa.Policy{ID: 2, ActionCode: "LOGIN", EntityType: mfa.UserID, EntityID: "u1", Type: mfa.Common, Required: 1,
			Methods: []mfa.Choice{{Code: "TOTP"}}})
	r := login(alice())
	r.Proven, r.Account.Off = false, challenge.FactorOf(challenge.FlowLogin, challenge.SMS)
	got, err := p.Start(t.Context(), r)
	storetest.Must(t, err)
	c := got.Challenge
	if len(c.Methods) != 2 || c.Methods[0].Hint == "" || c.Methods[1].Hint != "" || c.Off != 0 || c.Proven {
		t.Errorf("%+v", c)
	}
	letters := each[outbox.Add](p.commits[0])
	for i, l := range letters { // SMS and MAIL are one factor
		if l.State != outbox.Discarded || l.Proven || len(l.Payload) == 0 || p.post.texts[i].Code != "" {
			t.Errorf("%s: state %d, sent %q", l.Channel, l.State, p.post.texts[i].Code)
		}
	}
	// The value of a held-back code is never right.
	sum := p.m.Ring.Hash("otp", c.ID, c.Methods[0].ID, p.opened(letters[0].Message).Code)
	if string(sum.Sum) == string(c.Methods[0].Digest.Sum) || len(c.Methods[0].Digest.Sum) != len(sum.Sum) {
		t.Errorf("%+v", c.Methods[0])
	}
	for usage, want := range map[int][]outbox.State{8: {outbox.Queued, outbox.Queued},
		9: {outbox.Queued, outbox.Discarded}, 10: {outbox.Discarded, outbox.Discarded}} { // the cap is ten
		p.commits, p.usage, r.Account.Off = nil, usage, 0
		_, err = p.Start(t.Context(), r)
		storetest.Must(t, err)
		letters := each[outbox.Add](p.commits[0])
		if got := []outbox.State{letters[0].State, letters[1].State}; !slices.Equal(got, want) {
			t.Errorf("%d: %v", usage, got)
		}
	}
}

// A factor that is off is not offered to a starter with a proof, who can switch it on by the others.
func TestFactorThatIsOffIsNotOffered(t *testing.T) {
	p := newPorts(t, 1, "SMS", "MAIL", "TOTP")
	r := login(alice())
	r.Account.Off = challenge.FactorOf(challenge.FlowLogin, challenge.TOTP)
	r.Account.Countries = geo.NewFilter("TR")
	got, err := p.Start(t.Context(), r)
	storetest.Must(t, err)
	if c := got.Challenge; len(c.Methods) != 2 || c.Off != r.Account.Off || len(p.primed) != 0 ||
		c.Filter != "" {
		t.Errorf("%+v, %d primed", c, len(p.primed))
	}
	action := p.Starter.Actions["LOGIN"]
	action.KeepsFilter, action.Brief = true, func(command []byte) string { return string(command) + " in brief" }
	p.Starter.Actions["LOGIN"] = action
	r.Account.Off = 0
	got, err = p.Start(t.Context(), r)
	storetest.Must(t, err)
	if c := got.Challenge; len(c.Methods) != 3 || c.Filter != geo.NewFilter("TR") ||
		c.Brief != "command in brief" || len(p.primed) != 1 {
		t.Errorf("%+v", c)
	}
	r.Account = challenge.Account{UserID: "u3"}
	_, err = p.Start(t.Context(), r)
	storetest.Wants(t, err, fault.MFANotAvailable)
	p.post.channels = nil // no sender
	r.Account = challenge.Account{UserID: "u3", Phone: phoneA, Mail: mailA}
	_, err = p.Start(t.Context(), r)
	storetest.Wants(t, err, fault.MFANotAvailable)
}

// Methods live as long as the policy says, a code at most MaxCodeAge, and a challenge as long as its methods.
func TestLifetimes(t *testing.T) {
	p := newPorts(t, 1, "SMS", "TOTP", "PUSH_OTP")
	methods := []mfa.Method{{Code: "SMS", ExpireMs: 1_200_000}, {Code: "TOTP"}, {Code: "PUSH_OTP", ExpireMs: 700_000}}
	catalog := mfa.NewCatalog(methods, nil, []mfa.Policy{{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common,
		Required: 1, Methods: []mfa.Choice{{Code: "SMS"}, {Code: "TOTP"}, {Code: "PUSH_OTP"}}}})
	p.m.Catalog = func() *mfa.Catalog { return catalog }
	got, err := p.Start(t.Context(), login(alice()))
	storetest.Must(t, err)
	c, ms := got.Challenge, p.now.UnixMilli()
	if c.ExpiresAt != ms+1_200_000 || c.Methods[0].LifetimeMs != 600_000 || c.Methods[1].LifetimeMs != 1_200_000 ||
		c.Methods[2].LifetimeMs != 700_000 || c.Methods[2].ExpiresAt != ms+700_000 || c.Methods[2].Code != "PUSH_OTP" ||
		c.Methods[0].Code != "" {
		t.Errorf("%+v", c)
	}
	p.m.Config.MaxCodeAge = 0
	got, err = p.Start(t.Context(), login(alice()))
	storetest.Must(t, err)
	if c := got.Challenge; c.Methods[0].LifetimeMs != 1_200_000 {
		t.Errorf("%+v", c)
	}
}

// A port that fails ends a start with its error. Nothing is committed and nothing is sent.
func TestStartFailsWithItsPorts(t *testing.T) {
	for _, c := range []struct {
		fail    string
		prepare func(*ports, *challenge.StartRequest)
	}{
		{"Reserve", nil}, {"Spent", nil}, {"Commit", nil}, {"Wakes", nil},
		{"Usage", func(_ *ports, r *challenge.StartRequest) { r.Proven = false }},
		{"Allowed", func(_ *ports, r *challenge.StartRequest) { r.Account.Passkeys = true }},
		{"Send", func(p *ports, _ *challenge.StartRequest) { p.grant = &Grant{Send: []bool{true, false}} }},
		{"Sendings", func(p *ports, r *challenge.StartRequest) {
			p.grant = &Grant{Send: []bool{true, false}}
			r.Account.TOTP, r.Account.Push = false, false
		}},
		{"DummyCall", func(_ *ports, r *challenge.StartRequest) { r.Decoy = "?x" }},
		{"Open", func(_ *ports, r *challenge.StartRequest) { r.Decoy = "?x" }},
		{"Sendings", func(_ *ports, r *challenge.StartRequest) { r.Decoy = "?x" }},
		{"States", func(p *ports, r *challenge.StartRequest) { r.Decoy, p.open = "?x", make([]challenge.Ref, 3) }},
		{"Find", func(p *ports, r *challenge.StartRequest) {
			r.Key = challenge.ClientKey{Thumbprint: "k", Proven: true}
		}},
		{"Build", func(p *ports, r *challenge.StartRequest) {
			r.Key = challenge.ClientKey{Thumbprint: "k", Proven: true}
			p.client = &remembered.Client{ID: "c", Method: challenge.SMS, CV: 3, ExpiresAt: p.now.Add(time.Hour),
				CreatedAt: p.now}
		}},
	} {
		p := portsOf(t, mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1,
			RememberDays: 1, Methods: []mfa.Choice{{Code: "SMS"}, {Code: "MAIL"}, {Code: "TOTP"}, {Code: "PUSH"}}})
		p.Remembered = clients{ports: p}
		r := login(alice())
		if c.prepare != nil {
			c.prepare(p, &r)
		}
		p.fail = c.fail
		if _, err := p.Start(t.Context(), r); !errors.Is(err, errDown) || len(p.commits) != 0 || len(p.post.rows) != 0 {
			t.Errorf("%s: %v, %d commits", c.fail, err, len(p.commits))
		}
		refreshed := slices.ContainsFunc(p.calls, func(s string) bool { return strings.HasPrefix(s, "Refresh") })
		storetest.Equal(t, refreshed, (c.fail == "Commit"), c.fail, p.calls)
	}
	p := newPorts(t, 1, "SMS")
	p.fail = "PAuth"
	if _, err := p.Start(t.Context(), login(alice())); !errors.Is(err, errDown) {
		t.Error(err)
	}
	r := login(alice())
	r.Action = "UNKNOWN"
	_, err := p.Start(t.Context(), r)
	storetest.Wants(t, err, fault.InvalidState)
}
