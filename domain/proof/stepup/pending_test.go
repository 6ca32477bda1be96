package stepup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// waiting is a pending push of alice, started from a session on a phone.
func (p *ports) waiting(change func(*challenge.Challenge)) challenge.Insert {
	ms := p.now.UnixMilli()
	c := challenge.Challenge{ID: "c1", UserID: "u1", Action: "LOGIN", CreatedAt: ms, ExpiresAt: ms + 600_000,
		Body: challenge.Body{CV: 3, Starter: challenge.Starter{SessionID: "s1", IP: "203.0.113.9", Country: "DE",
			Brand: "Acme", Model: "One"}, Methods: []challenge.Method{{ID: "m0", Name: challenge.SMS},
			{ID: "m1", Name: challenge.PUSH, ExpiresAt: ms + 1}}}}
	change(&c)
	return challenge.Insert{Challenge: c, Command: p.m.Ring.Seal([]byte("command"), challenge.CommandData("c1")),
		Intent: p.m.Ring.Seal([]byte("document"), challenge.IntentData("c1"))}
}

// A device sees the pushes that it can answer, with what they are about.
func TestOngoing(t *testing.T) {
	country := func(code, lang string) string { return code + " in " + lang }
	for name, c := range map[string]struct {
		change func(*challenge.Challenge)
		want   int
	}{
		"a push":                  {func(*challenge.Challenge) {}, 1},
		"without a session":       {func(c *challenge.Challenge) { c.Starter.SessionID = "" }, 1},
		"of an ended session":     {func(c *challenge.Challenge) { c.Starter.SessionID = "s2" }, 0},
		"no push":                 {func(c *challenge.Challenge) { c.Methods = c.Methods[:1] }, 0},
		"answered":                {func(c *challenge.Challenge) { c.Methods[1].Order = 1 }, 0},
		"expired":                 {func(c *challenge.Challenge) { c.Methods[1].ExpiresAt-- }, 0},
		"of former credentials":   {func(c *challenge.Challenge) { c.CV = 2 }, 0},
		"for a passkey":           {func(c *challenge.Challenge) { c.Resistant = true }, 0},
		"for the passkey alone":   {func(c *challenge.Challenge) { c.Entry = challenge.Alone }, 0},
		"after another passkey":   {func(c *challenge.Challenge) { c.Entry = challenge.Key }, 1},
		"of an unknown operation": {func(c *challenge.Challenge) { c.Action = "UNKNOWN" }, 1},
	} {
		p := newPorts(t, 1, "PUSH")
		p.dead["s2"] = true
		p.pending = []challenge.Insert{p.waiting(c.change)}
		got, err := p.Ongoing(t.Context(), "u1", "en", country)
		if err != nil || len(got) != c.want || got == nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	p := newPorts(t, 1, "PUSH")
	action := p.Starter.Actions["LOGIN"]
	action.Describe = func(command []byte) []challenge.Detail {
		return []challenge.Detail{{Key: mfa.HeaderIP, Value: "from the " + string(command)}}
	}
	p.Starter.Actions["LOGIN"] = action
	p.pending = []challenge.Insert{p.waiting(func(*challenge.Challenge) {})}
	for asked, want := range map[string]Approval{
		"en": {Title: "Sign-in", Text: "Do you approve: Sign-in", Country: "DE in en", Rows: [][2]string{
			{"Device", "Acme One"}, {"IP address", "from the command"}, {"Location", "DE in en"}}},
		"": {Title: "Giriş", Text: "Onaylıyor musunuz: Giriş", Country: "DE in tr", Rows: [][2]string{
			{"Cihaz", "Acme One"}, {"IP adresi", "from the command"}, {"Konum", "DE in tr"}}},
	} {
		got := storetest.Value(p.Ongoing(t.Context(), "u1", asked, country))(t)
		a := got[0]
		slices.SortFunc(a.Rows, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
		slices.SortFunc(want.Rows, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
		if a.Title != want.Title || a.Text != want.Text || !slices.Equal(a.Rows, want.Rows) ||
			a.Country != want.Country || a.Left != time.Millisecond || string(a.Document) != "document" ||
			a.Method.ID != "m1" || a.Challenge.ID != "c1" {
			t.Errorf("%s, %s, %s, %v, %s, %s", a.Title, a.Text, a.Country, a.Rows, a.Left, a.Document)
		}
	}
	if got, err := p.Ongoing(t.Context(), "u1", "en", nil); err != nil || len(got[0].Rows) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := p.Ongoing(t.Context(), "unknown", "en", nil); err != nil || got == nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, damage := range []func(*challenge.Insert){func(i *challenge.Insert) { i.Command = []byte("damaged") },
		func(i *challenge.Insert) { i.Intent = []byte("damaged") }} {
		p.pending = []challenge.Insert{p.waiting(func(*challenge.Challenge) {})}
		damage(&p.pending[0])
		if got, err := p.Ongoing(t.Context(), "u1", "en", nil); err == nil {
			t.Errorf("%+v", got)
		}
	}
	p.pending[0] = p.waiting(func(*challenge.Challenge) {})
	p.pending[0].Command = nil
	if got, err := p.Ongoing(t.Context(), "u1", "ar", nil); err != nil ||
		got[0].Text != "هل توافق على: "+got[0].Title {
		t.Errorf("%+v, %v", got, err)
	}
}

// The intent of a challenge shows its details, then the time and the origin of its start.
func TestIntentOfStart(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	r := login(alice())
	r.Title, r.Details = "Pay", []challenge.Detail{{Key: "amount", Label: "Amount", Value: "1.5"}, {Key: "none"},
		{Key: "other", Value: "x"}}
	r.Starter = challenge.Starter{IP: "203.0.113.9", Country: "DE", Language: "en", Description: "a browser"}
	got := storetest.Value(p.Start(t.Context(), r))(t)
	insert := each[challenge.Insert](p.commits[0])[0]
	document, err := p.m.Document(insert.ID, insert.Intent)
	storetest.Must(t, err)
	var d intent.Document
	storetest.Must(t, json.Unmarshal(document, &d))
	want := intent.Document{Version: 1, ChallengeID: insert.ID, Action: "LOGIN", UserID: "u1",
		CreatedAt: p.now.UnixMilli(), Language: "en", Title: "Pay", CommandDigest: intent.Digest(insert.Command),
		Rows: []intent.Row{{Key: "amount", Label: "Amount", Value: "1.5"}, {Key: "other", Label: "other", Value: "x"},
			{Key: "time", Label: "Time", Value: "2023-11-14T22:13:20Z"}, {Key: "device", Label: "Device", Value: "a browser"},
			{Key: "ip", Label: "IP address", Value: "203.0.113.9"}, {Key: "country", Label: "Location", Value: "Germany"}}}
	storetest.Same(t, d, want)
	if got.Challenge.IntentDigest != intent.Digest(document) {
		t.Error(got.Challenge.IntentDigest)
	}
	r = login(alice()) // stored texts that hide others are shown escaped
	r.Title, r.Details = "Pay\u202e", []challenge.Detail{{Key: "a\u00ad", Label: "A\u061c", Value: "tag\n\u202e"}}
	_, err = p.Start(t.Context(), r)
	storetest.Must(t, err)
	insert = each[challenge.Insert](p.commits[1])[0]
	document, err = p.m.Document(insert.ID, insert.Intent)
	storetest.Must(t, err)
	storetest.Must(t, json.Unmarshal(document, &d))
	if want := (intent.Row{Key: "a[U+00AD]", Label: "A[U+061C]", Value: "tag[U+000A][U+202E]"}); d.Rows[0] != want ||
		d.Title != "Pay[U+202E]" {
		t.Errorf("%+v", d)
	}
	r = login(alice())
	action := p.Starter.Actions["LOGIN"]
	action.Describe = func(command []byte) []challenge.Detail {
		return []challenge.Detail{{Key: "k", Value: string(command)}}
	}
	p.Starter.Actions["LOGIN"] = action
	_, err = p.Start(t.Context(), r)
	storetest.Must(t, err)
	insert = each[challenge.Insert](p.commits[2])[0]
	document, err = p.m.Document(insert.ID, insert.Intent)
	storetest.Must(t, err)
	d = intent.Document{}
	storetest.Must(t, json.Unmarshal(document, &d))
	if d.Title != "Giriş" || d.Language != "tr" || len(d.Rows) != 3 || d.Rows[0].Value != "command" {
		t.Errorf("%+v", d)
	}
}

// A remembered client that shows its key completes its method. Without another required one, its action runs at once.
func TestStartOfRememberedClient(t *testing.T) {
	policy := mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1, RememberDays: 5,
		Methods: []mfa.Choice{{Code: "SMS"}, {Code: "TOTP"}}}
	right := func() (*ports, challenge.StartRequest) {
		p := portsOf(t, policy)
		p.Remembered = clients{ports: p}
		p.client = &remembered.Client{ID: "r1", Method: challenge.SMS, CV: 3, CreatedAt: p.now,
			ExpiresAt: p.now.Add(time.Hour)}
		r := login(alice())
		r.Key = challenge.ClientKey{Thumbprint: "k", Proven: true}
		r.Starter.RequestID = "q1"
		return p, r
	}
	p, r := right()
	got := storetest.Value(p.Start(t.Context(), r))(t)
	c, writes := got.Challenge, p.commits[0]
	storetest.Same(t, each[remembered.Used](writes),
		[]remembered.Used{{ID: "r1", UserID: "u1", Thumbprint: "k", At: p.now}})
	record := each[challenge.Record](writes)
	if c.State != challenge.Done || c.Key != "k" || c.RememberDays != 5 || len(record) != 1 ||
		record[0].ChallengeID != c.ID || record[0].CreatedAt != p.now.UnixMilli() ||
		record[0].ExpiresAt != c.ExpiresAt+120_000 ||
		len(p.primed) != 0 || len(p.post.rows) != 0 || got.Result == nil || got.Result.SessionID != "s9" ||
		len(each[commit.Unflushed](writes)) != 1 || slices.Contains(p.calls, "Reserve") {
		t.Errorf("%+v, %+v", got, record)
	}
	storetest.Same(t, each[audit.Record](writes), []audit.Record{{At: p.now, ActorID: "u1", UserID: "u1", Action: "LOGIN",
		Target: c.ID, Outcome: audit.Success, IP: "203.0.113.9", RequestID: "q1", Detail: "session s9"}})
	plain, err := p.m.Ring.Open(record[0].Sealed, challenge.OutcomeData(c.ID))
	var result challenge.Result
	if err != nil || result.UnmarshalBinary(plain) != nil || result.SessionID != "s9" {
		t.Errorf("%+v, %v", result, err)
	}
	for name, c := range map[string]struct {
		change func(*ports, *challenge.StartRequest)
		done   bool
	}{
		"right":            {func(*ports, *challenge.StartRequest) {}, true},
		"not remembered":   {func(p *ports, _ *challenge.StartRequest) { p.client = nil }, false},
		"no store":         {func(p *ports, _ *challenge.StartRequest) { p.Remembered = nil }, false},
		"no key":           {func(_ *ports, r *challenge.StartRequest) { r.Key.Thumbprint = "" }, false},
		"no proof of key":  {func(_ *ports, r *challenge.StartRequest) { r.Key.Proven = false }, false},
		"no password":      {func(_ *ports, r *challenge.StartRequest) { r.Proven = false }, false},
		"other method":     {func(p *ports, _ *challenge.StartRequest) { p.client.Method = challenge.PUSH }, false},
		"old credentials":  {func(p *ports, _ *challenge.StartRequest) { p.client.CV = 2 }, false},
		"its time is over": {func(p *ports, _ *challenge.StartRequest) { p.client.ExpiresAt = p.now }, false},
	} {
		p, r := right()
		c.change(p, &r)
		got, err := p.Start(t.Context(), r)
		if err != nil || (got.Challenge.State == challenge.Done) != c.done || (len(p.post.rows) == 0) != c.done {
			t.Errorf("%s: %+v, %v", name, got.Challenge, err)
		}
	}
	p, r = right() // the proof is checked only if it spares a method
	proofs := error(nil)
	r.Key.Proven, r.Key.Prove = false, func(ctx context.Context) error { return proofs }
	if got, err := p.Start(t.Context(), r); err != nil || got.Challenge.State != challenge.Done {
		t.Errorf("%+v, %v", got, err)
	}
	proofs = errDown
	if _, err := p.Start(t.Context(), r); !errors.Is(err, errDown) {
		t.Error(err)
	}
	p.client = nil
	if got, err := p.Start(t.Context(), r); err != nil || got.Challenge.State != challenge.Pending ||
		got.Challenge.Key != "k" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A refusal of the action is the outcome of a challenge that its start has completed; a failure ends the start.
func TestActionOfRememberedClient(t *testing.T) {
	right := func(action challenge.Action) (*ports, challenge.StartRequest) {
		p := portsOf(t, mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1,
			RememberDays: 5, Methods: []mfa.Choice{{Code: "SMS"}, {Code: "TOTP"}}})
		p.Remembered = clients{ports: p}
		p.client = &remembered.Client{ID: "r1", Method: challenge.SMS, CV: 3, CreatedAt: p.now,
			ExpiresAt: p.now.Add(time.Hour)}
		p.Starter.Actions["LOGIN"] = action
		r := login(alice())
		r.Key = challenge.ClientKey{Thumbprint: "k", Proven: true}
		return p, r
	}
	build := func(err error) func(context.Context, challenge.Execution) (challenge.Result, []commit.Write, error) {
		return func(context.Context, challenge.Execution) (challenge.Result, []commit.Write, error) {
			return challenge.Result{}, nil, err
		}
	}
	p, r := right(challenge.Action{Flow: challenge.FlowLogin, Build: build(fault.New(fault.InvalidState, "not now")),
		Ended: func(context.Context, challenge.Challenge, time.Time) ([]commit.Write, error) {
			return []commit.Write{commit.Unflushed{}}, nil
		}})
	got, err := p.Start(t.Context(), r)
	storetest.Must(t, err)
	rows := each[audit.Record](p.commits[0])
	if got.Result != nil && got.Result.Success || len(rows) != 1 || rows[0].Outcome != audit.Refused ||
		rows[0].Detail != string(fault.InvalidState) || len(each[commit.Unflushed](p.commits[0])) != 1 {
		t.Errorf("%+v, %+v", got, rows)
	}
	for _, code := range []fault.Code{fault.Unavailable, fault.Overloaded} {
		p, r := right(challenge.Action{Flow: challenge.FlowLogin, Build: build(fault.New(code, "later"))})
		_, err := p.Start(t.Context(), r)
		storetest.Wants(t, err, code)
	}
	// An action with a transaction of its own is run by the owner of the challenge.
	exec := func(context.Context, challenge.Execution) (r challenge.Result, err error) { return r, err }
	p, r = right(challenge.Action{Flow: challenge.FlowLogin, Exec: exec})
	for _, c := range []struct {
		answered func(id string) Answered
		fail     string
		want     bool
	}{{func(id string) Answered { return Answered{} }, "", false},
		{func(id string) Answered { return Answered{Outcome: []byte("damaged")} }, "", false},
		{func(id string) Answered { return p.outcome(id, challenge.Result{Success: true}) }, "Result", false},
		{func(id string) Answered {
			return Answered{Outcome: p.m.Ring.Seal([]byte{99}, challenge.OutcomeData(id))}
		}, "", false}, {func(id string) Answered { return p.outcome(id, challenge.Result{Success: true}) }, "", true}} {
		r.Bind = func(made challenge.Challenge) []commit.Write {
			p.answered = c.answered(made.ID)
			return nil
		}
		p.fail = c.fail
		got, err := p.Start(t.Context(), r)
		if err != nil || (got.Result != nil) != c.want || c.want && !got.Result.Success {
			t.Errorf("%+v, %v", got.Result, err)
		}
	}
	p.calls, p.fail = nil, ""
	inside, committed := commit.Hooks(t.Context())
	got, err = p.Start(inside, r)
	resumed := func() bool { return slices.Contains(p.calls, "Resume "+got.Challenge.ID) }
	if before := resumed(); err != nil || got.Result != nil || before {
		t.Errorf("%+v, %v, %t", got.Result, err, before)
	}
	if committed(); !resumed() {
		t.Error(p.calls)
	}
}

// A notice about a decoy or a stranger costs the same as one to a user, and is not sent.
func TestNoticesWithoutAccount(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	rules := challenge.DefaultRules()
	guessed := p.m.Guessed(rules)
	decoy := challenge.Challenge{Flow: challenge.FlowLogin, Body: challenge.Body{Kind: challenge.Decoy, Subject: "?x"}}
	for _, row := range []int{9, 10, 11, 100} {
		of := challenge.Challenge{UserID: "u1", Flow: challenge.FlowLogin}
		known := guessed(of, alice(), challenge.SMS, row, "203.0.113.9")
		unknown := guessed(decoy, challenge.Account{}, challenge.SMS, row, "203.0.113.9")
		if len(known) != len(unknown) || (len(known) > 0) != (row == 10 || row == 100) {
			t.Errorf("%d: %d, %d", row, len(known), len(unknown))
		}
		for i := range unknown {
			a, of := known[i].(outbox.AddOnce)
			b, is := unknown[i].(outbox.AddOnce)
			if of != is || is && (a.State != outbox.Queued || b.State != outbox.Discarded || b.UserID != "?x" ||
				a.UserID != "u1") {
				t.Errorf("%d: %+v, %+v", row, a, b)
			}
		}
	}
	for _, c := range []struct {
		to   challenge.Account
		user string
		want outbox.State
	}{{alice(), "u1", outbox.Queued}, {challenge.Account{}, "?x", outbox.Discarded},
		{challenge.Account{UserID: "u2", Phone: phoneA}, "?x", outbox.Discarded}} {
		once := each[outbox.AddOnce](p.m.Applied(c.to, "?x", "203.0.113.9"))
		if len(once) != 1 || once[0].State != c.want || once[0].UserID != c.user {
			t.Errorf("%+v", once)
		}
	}
	writes := p.m.Notify(alice(), "kyc", message.KYCApproved, nil, "203.0.113.9", challenge.MAIL, challenge.SMS,
		challenge.PUSH)
	inside := each[notification.Add](writes)
	if len(inside) != 1 || inside[0].UserID != "u1" || inside[0].Topic != "kyc" || inside[0].Title == "" ||
		inside[0].Body == "" || len(each[outbox.Add](writes)) != 2 {
		t.Errorf("%+v", writes)
	}
}
