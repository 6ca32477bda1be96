package stepup

import (
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
)

func names(c challenge.Challenge) (all []challenge.Name) {
	for _, m := range c.Methods {
		all = append(all, m.Name)
	}
	return all
}

// A start with a proof drops the codes that a cap forbids, if enough methods remain. Otherwise it is refused.
func TestCapsOfStartWithProof(t *testing.T) {
	for _, c := range []struct {
		name     string
		required int
		all      int    // messages to the country; its budget is 100
		grant    []bool // of the user's owner
		resend   bool   // whether the owner grants a code that is requested again
		want     []challenge.Name
		wait     time.Duration
		capped   int64
	}{
		{"nothing is capped", 2, 99, []bool{true, true}, true, []challenge.Name{"SMS", "MAIL", "TOTP"}, 0, 0},
		{"no budget for SMS", 1, 100, []bool{true}, true, []challenge.Name{"MAIL", "TOTP"}, 0, 1},
		{"no budget, and too few others", 2, 100, nil, true, nil, time.Minute, 1},
		{"no SMS to the user", 1, 0, []bool{false, true}, true, []challenge.Name{"MAIL", "TOTP"}, 0, 1},
		{"no code to the user", 1, 0, []bool{false, true}, false, []challenge.Name{"TOTP"}, 0, 2},
		{"no mail to the user", 1, 0, []bool{true, false}, true, []challenge.Name{"SMS", "TOTP"}, 0, 1},
		{"none to the user, and too few others", 2, 0, []bool{false, true}, true, nil, 23 * time.Hour, 1},
	} {
		p := newPorts(t, c.required, "SMS", "MAIL", "TOTP")
		p.all, p.send = c.all, c.resend
		p.m.Config.Caps = Caps{UserDay: 2}
		p.sent = []outbox.Sending{{At: p.now.Add(-time.Hour).UnixMilli()}}
		p.grant = &Grant{Send: slices.Clone(c.grant)}
		got, err := p.Start(t.Context(), login(alice()))
		var f *fault.Error
		switch {
		case c.want != nil && (err != nil || !slices.Equal(names(got.Challenge), c.want)):
			t.Errorf("%s: %v, %v", c.name, names(got.Challenge), err)
		case c.want == nil && (!errors.As(err, &f) || f.Code != fault.RateLimited || f.RetryAfter != c.wait):
			t.Errorf("%s: %v", c.name, err)
		}
		if p.m.Capped.Load() != c.capped || (len(p.commits) == 1) != (c.want != nil) {
			t.Errorf("%s: %d capped, %d commits", c.name, p.m.Capped.Load(), len(p.commits))
		}
		for i, l := range p.post.rows { // each message belongs to its own method
			if m, ok := got.Challenge.Method(l.MethodID); !ok || l.Channel != message.Channel(m.Name) ||
				p.post.texts[i].Code == "" {
				t.Errorf("%s: %+v of %+v", c.name, l, m)
			}
		}
	}
}

// A challenge continues without some codes only if the others suffice and no mandatory method is among those.
func TestCarried(t *testing.T) {
	sms, mail := challenge.Method{Name: challenge.SMS}, challenge.Method{Name: challenge.MAIL, Mandatory: true}
	totp, done := challenge.Method{Name: challenge.TOTP}, challenge.Method{Name: challenge.MAIL, Mandatory: true, Order: 1}
	for i, c := range []struct {
		required int
		methods  []challenge.Method
		want     bool
	}{
		{1, []challenge.Method{sms, totp}, true}, {2, []challenge.Method{sms, totp}, false},
		{1, []challenge.Method{mail, totp}, false}, {2, []challenge.Method{done, totp}, true},
		{1, []challenge.Method{sms}, false}, {3, []challenge.Method{done, totp, sms}, false},
	} {
		b := challenge.Body{Required: c.required, Methods: c.methods}
		storetest.Equal(t, carried(challenge.Challenge{Body: b}), c.want, i)
	}
}

// The budget of a country belongs to its longest dialling prefix. Half of it is reserved for starters with a proof.
func TestBudgetOfCountry(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	p.m.Config.DialDay = map[string]int{"1": 10, "1202": 4, "90": 0}
	for to, want := range map[string]string{"+12025550123": "1202", "+13025550123": "1", phoneA: "90", mailA: "",
		"12025550123": ""} {
		storetest.Equal(t, p.m.dial(to), want, to)
	}
	for i, c := range []struct {
		dial          string
		proven        bool
		all, unproven int
		usage, ahead  int
		want          bool
	}{
		{"1", true, 9, 9, 50, 0, true}, {"1", true, 10, 0, 0, 0, false}, {"1", false, 9, 4, 0, 0, true},
		{"1", false, 9, 5, 0, 0, false}, {"90", true, 99, 99, 0, 0, true}, {"", false, 99, 99, 0, 0, true},
		{"", false, 0, 0, 9, 0, true}, {"", false, 0, 0, 9, 1, false}, {"", false, 0, 0, 10, 0, false},
	} {
		p.all, p.unproven, p.usage = c.all, c.unproven, c.usage
		got, err := p.m.afford(t.Context(), p.now, &outbox.Message{Dial: c.dial, Proven: c.proven, Prefix: "x"}, c.ahead)
		if got != c.want || err != nil {
			t.Errorf("%d: %t, %v", i, got, err)
		}
	}
	p.m.Config.PrefixHour, p.fail = 0, "Usage" // no cap is counted
	if ok, err := p.m.afford(t.Context(), p.now, &outbox.Message{}, 0); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if p.m.Config.uncapped() || (Config{Caps: Caps{UserDay: 1}}).uncapped() || (Config{PrefixHour: 1}).uncapped() ||
		(Config{DialDay: map[string]int{"1": 1}}).uncapped() || !(Config{}).uncapped() {
		t.Error("uncapped")
	}
}

// The push of a challenge is counted, and its devices are woken, unless the bounds on pushes forbid it.
func TestStartWithPush(t *testing.T) {
	p := newPorts(t, 1, "PUSH", "SMS")
	p.wakeable = []device.Wake{{DeviceID: "d1", Target: "t1"}, {DeviceID: "d2", Target: "t2"}}
	p.grant = &Grant{Send: []bool{true}, PushNumber: 8}
	got := storetest.Value(p.Start(t.Context(), login(alice())))(t)
	c := got.Challenge
	storetest.Same(t, each[challenge.SendPush](p.commits[0]), []challenge.SendPush{{Push: challenge.Push{ChallengeID: c.ID,
		UserID: "u1", Number: 8, SentAt: p.now.UnixMilli()}}})
	if p.reserved.Push == nil || c.Methods[0].Number != "" {
		t.Errorf("%+v, %+v", p.reserved, c.Methods[0])
	}
	letters := each[outbox.Add](p.commits[0])
	if len(letters) != 3 || len(p.post.rows) != 3 {
		t.Fatalf("%d letters, %d are sent", len(letters), len(p.post.rows))
	}
	for i, l := range letters[1:] {
		text := p.opened(l.Message)
		if l.Channel != message.Push || !l.Uncounted || !l.Proven || l.Dial != "" || l.Generation != i ||
			l.MethodID != c.Methods[0].ID || text.To != []string{"t1", "t2"}[i] ||
			text.Text != `{"challengeId":"`+c.ID+`","action":"LOGIN","expire":120}` {
			t.Errorf("%+v, %+v", l, text)
		}
	}
	none := func(name string, change func(*ports)) {
		p := newPorts(t, 1, "PUSH", "SMS")
		p.wakeable = []device.Wake{{DeviceID: "d1", Target: "t1"}}
		change(p)
		_, err := p.Start(t.Context(), login(alice()))
		storetest.Must(t, err)
		storetest.Equal(t, len(each[outbox.Add](p.commits[0])), 1, name, "letters")
	}
	none("no devices", func(p *ports) { p.Starter.Devices = nil })
	none("no sender", func(p *ports) { delete(p.post.channels, message.Push) })
}

// Without a push, the others must suffice. The owner is notified only if the starter proved the password.
func TestBoundOfPushes(t *testing.T) {
	for _, c := range []struct {
		proven   bool
		required int
		wait     time.Duration
		refused  time.Duration
		notices  int
	}{{true, 2, 0, 0, 1}, {false, 2, 0, 0, 0}, {true, 3, time.Hour, time.Hour, 1}, {false, 3, 0, time.Second, 0}} {
		p := newPorts(t, c.required, "SMS", "PUSH", "MAIL")
		p.grant = &Grant{Send: []bool{true, true}, NoPush: true, PushWait: c.wait}
		r := login(alice())
		r.Proven = c.proven
		got, err := p.Start(t.Context(), r)
		notices := 0
		for _, writes := range p.commits {
			notices += len(each[outbox.AddOnce](writes))
		}
		var f *fault.Error
		kept := slices.Equal(names(got.Challenge), []challenge.Name{challenge.SMS, challenge.MAIL})
		if notices != c.notices || c.refused == 0 && (err != nil || !kept) ||
			c.refused > 0 && (!errors.As(err, &f) || f.Code != fault.RateLimited || f.RetryAfter != c.refused) {
			t.Errorf("%+v: %d notices, %v, %v", c, notices, names(got.Challenge), err)
		}
		for i, m := range got.Challenge.Methods {
			if p.post.rows[i].MethodID != m.ID {
				t.Errorf("%+v", p.post.rows[i])
			}
		}
	}
}

// The starter of a push sees a number of two digits, and only an approval with it is right.
func TestNumberOfPush(t *testing.T) {
	p := portsOf(t, mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1,
		NumberMatching: true, SignIntent: true, Methods: []mfa.Choice{{Code: "PUSH"}, {Code: "TOTP"}}})
	got := storetest.Value(p.Start(t.Context(), login(alice())))(t)
	c := got.Challenge
	m := c.Methods[0]
	sum := p.m.Ring.Hash("otp", c.ID, m.ID, "APPROVED:"+m.Number)
	if len(m.Number) != 2 || string(m.Digest.Sum) != string(sum.Sum) || m.Digest.Key != sum.Key || !c.SignIntent ||
		c.Methods[1].Number != "" {
		t.Errorf("%+v", m)
	}
	seen := map[string]bool{}
	for range 5000 {
		seen[newNumber()] = true
	}
	if len(seen) != 90 || seen["9"] || seen["100"] || !seen["10"] || !seen["99"] {
		t.Errorf("%d numbers", len(seen))
	}
}

// Passkeys may approve the push of a start with a proof, whose options name the intent.
func TestStartWithPasskeys(t *testing.T) {
	policy := mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1,
		Methods: []mfa.Choice{{Code: "PUSH"}, {Code: "SMS"}}}
	resistant, alone := policy, policy
	resistant.PhishingResistant, alone.PasskeyAlone = true, true
	for name, c := range map[string]struct {
		policy    mfa.Policy
		passkeys  bool
		proven    bool
		only      bool
		entry     challenge.Entry
		methods   int
		marked    bool // Passkeys of the challenge
		options   bool
		pushes    bool // whether the bounds on pushes apply
		wakes     int
		primed    bool
		resulting challenge.Entry
	}{
		"without passkeys":     {policy, false, true, false, challenge.Password, 2, false, false, true, 1, true, 0},
		"with passkeys":        {policy, true, true, false, challenge.Password, 2, true, true, true, 1, false, 0},
		"only passkeys":        {policy, true, true, true, challenge.Password, 2, true, true, false, 1, false, 0},
		"no proof":             {policy, true, false, false, challenge.Password, 2, false, false, true, 1, true, 0},
		"resistant":            {resistant, true, true, false, challenge.Password, 1, true, true, false, 0, false, 0},
		"resistant, no key":    {resistant, false, true, false, challenge.Password, 0, false, false, false, 0, false, 0},
		"after a passkey":      {policy, true, true, false, challenge.Key, 2, false, false, true, 1, false, challenge.Key},
		"after the only one":   {policy, true, true, true, challenge.Key, 1, false, false, false, 0, false, challenge.Key},
		"resistant after one":  {resistant, true, true, false, challenge.Key, 0, false, false, false, 0, false, 0},
		"alone":                {alone, true, true, false, challenge.Key, 1, true, false, false, 0, false, challenge.Alone},
		"alone, by a password": {alone, true, true, false, challenge.Password, 2, true, true, true, 1, false, 0},
	} {
		p := portsOf(t, c.policy)
		p.only, p.wakeable = c.only, []device.Wake{{DeviceID: "d1", Target: "t1"}}
		r := login(alice())
		r.Account.Passkeys, r.Proven, r.Entry = c.passkeys, c.proven, c.entry
		got, err := p.Start(t.Context(), r)
		if c.methods == 0 {
			storetest.Wants(t, err, fault.MFANotAvailable)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		made, woken := got.Challenge, 0
		for _, l := range each[outbox.Add](p.commits[0]) {
			if l.Channel == message.Push {
				woken++
			}
		}
		if len(made.Methods) != c.methods || made.Passkeys != c.marked || (got.WebAuthn != nil) != c.options ||
			(p.reserved.Push != nil) != c.pushes || woken != c.wakes || (len(p.primed) == 1) != c.primed ||
			made.Entry != c.resulting {
			t.Errorf("%s: %+v, %s, push %v, %d woken, %d primed", name, made, got.WebAuthn, p.reserved.Push, woken,
				len(p.primed))
		}
		if c.options && string(got.WebAuthn) != `"`+made.IntentDigest+`"` {
			t.Errorf("%s: %s", name, got.WebAuthn)
		}
	}
}

var capsNow = time.UnixMilli(1_700_000_000_000)

// sentAgo lists messages to a destination, oldest first.
func sentAgo(to string, ago ...time.Duration) (all []outbox.Sending) {
	for _, d := range ago {
		all = append(all, outbox.Sending{Destination: []byte(to), At: capsNow.Add(-d).UnixMilli()})
	}
	return all
}

// A start with a proof waits until each of its messages fits under every cap, and at least a second. The cap with the
// longest wait is named.
func TestWaitForCaps(t *testing.T) {
	const h = time.Hour
	most := Caps{DestinationHour: 2, DestinationDay: 3, UserDay: 4}
	for _, c := range []struct {
		name string
		caps Caps
		sent []outbox.Sending
		to   []string
		want time.Duration
		cap  string
	}{
		{"nothing was sent", most, nil, []string{"a"}, time.Second, anyCap},
		{"one below each cap", most, sentAgo("a", h/2), []string{"a"}, time.Second, anyCap},
		{"the hour is full", most, sentAgo("a", h/2, h/4), []string{"a"}, h / 2, "limits.destination_per_hour"},
		{"the hour is full elsewhere", most, sentAgo("b", h/2, h/4), []string{"a"}, time.Second, anyCap},
		{"the hour is over by one", most, sentAgo("a", h/2, h/3, h/4), []string{"a"}, 24*h - h/2,
			"limits.destination_per_day"},
		{"a message of an hour ago", most, sentAgo("a", h, h/4), []string{"a"}, time.Second, anyCap},
		{"the day is full", most, sentAgo("a", 20*h, 10*h, 2*h), []string{"a"}, 4 * h,
			"limits.destination_per_day"},
		{"a message of a day ago", most, sentAgo("a", 24*h, 10*h, 2*h), []string{"a"}, time.Second, anyCap},
		{"the user's day is full", most, sentAgo("b", 20*h, 10*h, 5*h, 2*h), []string{"a"}, 4 * h,
			"limits.user_per_day"},
		{"two messages need two places", most, sentAgo("b", 20*h, 10*h, 5*h, 2*h), []string{"a", "b"}, 14 * h,
			"limits.user_per_day"},
		{"more messages than the cap", Caps{UserDay: 1}, sentAgo("b", 20*h, 10*h), []string{"a", "c", "d"}, 14 * h,
			"limits.user_per_day"},
		{"the last of several destinations", most, sentAgo("b", 20*h, 10*h, 2*h), []string{"a", "b"}, 4 * h,
			"limits.user_per_day"},
		{"no caps", Caps{}, sentAgo("a", h/2, h/3, h/4), []string{"a"}, time.Second, anyCap},
	} {
		var letters []letter
		for _, to := range c.to {
			letters = append(letters, letter{to: to})
		}
		got, limit := c.caps.wait(capsNow, c.sent, letters, func(to string) []byte { return []byte(to) })
		if got != c.want || limit != c.cap {
			t.Errorf("%s: %s by %s, want %s by %s", c.name, got, limit, c.want, c.cap)
		}
	}
}

// A start without a proof has half of each cap, rounded up, for each destination alone.
func TestStartWithoutAProofHasHalfOfTheCaps(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		name string
		caps Caps
		sent []outbox.Sending
		to   []string
		want []bool
	}{
		{"nothing was sent", Caps{1, 1, 1}, nil, []string{"a", "b"}, []bool{true, true}},
		{"half of the hour", Caps{DestinationHour: 3}, sentAgo("a", h/2), []string{"a"}, []bool{true}},
		{"over half of the hour", Caps{DestinationHour: 3}, sentAgo("a", h/2, h/3), []string{"a"}, []bool{false}},
		{"an hour ago", Caps{DestinationHour: 3}, sentAgo("a", h, h/3), []string{"a"}, []bool{true}},
		{"over half of the day", Caps{DestinationDay: 4}, sentAgo("a", 5*h, 4*h), []string{"a"}, []bool{false}},
		{"over half of the user's day", Caps{UserDay: 2}, sentAgo("a", 5*h), []string{"a", "b"}, []bool{false, true}},
		{"below half of the hour", Caps{DestinationHour: 4}, sentAgo("a", h/2), []string{"a"}, []bool{true}},
		{"half of an even hour", Caps{DestinationHour: 4}, sentAgo("a", h/2, h/3), []string{"a"}, []bool{false}},
		{"half of the day", Caps{DestinationDay: 3}, sentAgo("a", 5*h), []string{"a"}, []bool{true}},
		{"half of an odd day", Caps{DestinationDay: 3}, sentAgo("a", 5*h, 4*h), []string{"a"}, []bool{false}},
		{"the only one of the hour", Caps{DestinationHour: 1}, sentAgo("a", h/2), []string{"a"}, []bool{false}},
		{"two to one destination", Caps{DestinationHour: 2}, nil, []string{"a", "a"}, []bool{true, false}},
		{"no caps", Caps{}, sentAgo("a", h/2, h/3), []string{"a"}, []bool{true}},
	} {
		var sendings []Sending
		for _, to := range c.to {
			sendings = append(sendings, Sending{Destination: []byte(to)})
		}
		if got := c.caps.allow(capsNow, c.sent, sendings); !slices.Equal(got, c.want) {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
