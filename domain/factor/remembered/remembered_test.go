package remembered_test

import (
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
)

var now = time.UnixMilli(1_750_000_000_000)

// A client counts up to its last millisecond, for its credentials, and never for longer than the policy says now.
func TestCounts(t *testing.T) {
	c := remembered.Client{CV: 4, CreatedAt: now, ExpiresAt: now.AddDate(0, 0, 30)}
	day := 24 * time.Hour
	for _, one := range []struct {
		after time.Duration
		cv    int64
		days  int
		want  bool
	}{
		{0, 4, 30, true}, {30*day - time.Millisecond, 4, 30, true}, {30 * day, 4, 30, false},
		{0, 4, 0, false}, {0, 4, -1, false}, {0, 5, 30, false}, {0, 3, 30, false},
		{10*day - time.Millisecond, 4, 10, true}, {10 * day, 4, 10, false}, // shortened
		{30*day - time.Millisecond, 4, 90, true}, {30 * day, 4, 90, false}, // lengthened
	} {
		if got := c.Counts(now.Add(one.after), one.cv, one.days); got != one.want {
			t.Errorf("%+v: %v", one, got)
		}
	}
}

// The first really completed method is chosen, in the order of the policy.
func TestChosen(t *testing.T) {
	done := func(n challenge.Name, order int) challenge.Method { return challenge.Method{Name: n, Order: order} }
	base := func(change func(*challenge.Challenge), ms ...challenge.Method) challenge.Challenge {
		c := challenge.Challenge{UserID: "u", Action: "LOGIN", Body: challenge.Body{Key: "k", RememberDays: 30,
			Proven: true, CV: 7, Methods: ms}}
		if change != nil {
			change(&c)
		}
		return c
	}
	sms, totp := done(challenge.SMS, 2), done(challenge.TOTP, 1)
	must, again := sms, sms
	must.Mandatory, again.Remembered = true, "r1"
	for name, one := range map[string]struct {
		c    challenge.Challenge
		want challenge.Name
	}{
		"the order of the policy": {base(nil, sms, totp), challenge.SMS},
		"only completed ones":     {base(nil, done(challenge.SMS, 0), totp), challenge.TOTP},
		"none completed":          {base(nil, done(challenge.SMS, 0)), ""},
		"no key":                  {base(func(c *challenge.Challenge) { c.Key = "" }, sms), ""},
		"no option":               {base(func(c *challenge.Challenge) { c.RememberDays = 0 }, sms), ""},
		"not proven":              {base(func(c *challenge.Challenge) { c.Proven = false }, sms), ""},
		"a decoy":                 {base(func(c *challenge.Challenge) { c.Kind = challenge.Decoy }, sms), ""},
		"an applicant":            {base(func(c *challenge.Challenge) { c.Kind = challenge.Applicant }, sms), ""},
		"mandatory":               {base(nil, must, totp), challenge.TOTP},
		"remembered already":      {base(nil, again, totp), ""},
		"a push that must sign": {base(func(c *challenge.Challenge) { c.SignIntent = true },
			done(challenge.PUSH, 1), done(challenge.MAIL, 2)), challenge.MAIL},
		"any other push": {base(nil, done(challenge.PUSH, 1)), challenge.PUSH},
	} {
		m, ok := remembered.Chosen(one.c)
		if ok != (one.want != "") || m.Name != one.want {
			t.Errorf("%s: %v", name, m.Name)
		}
		if ws := remembered.Writes(one.c, now, audit.By{}); (len(ws) == 2) != ok {
			t.Errorf("%s: %d writes", name, len(ws))
		} else if ok {
			made := ws[0].(remembered.Add)
			if made.UserID != "u" || made.Thumbprint != "k" || made.Action != "LOGIN" || made.CV != 7 ||
				made.Method != one.want || !made.ExpiresAt.Equal(now.AddDate(0, 0, 30)) ||
				ws[1].(audit.Record).ActorID != "u" {
				t.Errorf("%s: %+v", name, ws)
			}
		}
	}
}
