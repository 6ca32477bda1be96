package challenge_test

import (
	"slices"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// The required and the mandatory methods complete a challenge (D-2FA-10, D-PWD-02, SEC-10).
func TestRequired(t *testing.T) {
	play(t, []scenario{
		{"one of two", start(1, "sms", "mail"), []step{{0, "mail right", "executing"}}},
		{"all of four", start(4, "sms", "mail", "totp", "push"), []step{
			{0, "push right", "pending"}, {0, "mail right", "pending"}, {0, "totp right", "pending"},
			{0, "sms right", "executing"}}},
		{"mandatory ones must be among them", start(2, "sms!", "mail!", "totp", "push"), []step{
			{0, "totp right", "pending"}, {0, "push right", "pending"}, {0, "sms right", "pending"},
			{0, "mail right", "executing"}}},
		{"mandatory ones alone are too few", start(2, "mail!", "totp", "push"), []step{
			{0, "mail right", "pending"}, {0, "push right", "executing"}}},
		{"the remaining ones are dropped", start(1, "sms", "mail"), []step{
			{0, "sms right", "executing"}, {60_000, "mail renew", "CHALLENGE_CLOSED"}, {60_000, "finish", "done"},
			{60_000, "mail right", "CHALLENGE_CLOSED"}, {60_000, "mail renew", "CHALLENGE_CLOSED"}}},
	})
}

// A lifetime ends one millisecond after its last (D-2FA-15), and the expiry of the challenge is reported before that
// of the method.
func TestExpiry(t *testing.T) {
	short := start(1, "sms", "totp")
	short.Methods[1].ExpiresAt = t0 + 300_000
	play(t, []scenario{
		{"OTP before", start(1, "sms"), []step{{119_999, "sms right", "executing"}}},
		{"OTP on it", start(1, "sms"), []step{{120_000, "sms right", "METHOD_EXPIRED"},
			{120_000, "sms wrong", "METHOD_EXPIRED"}}},
		{"OTP after", start(1, "sms"), []step{{120_001, "sms right", "METHOD_EXPIRED"}}},
		{"push before", start(1, "push"), []step{{119_999, "push right", "executing"}}},
		{"push on it", start(1, "push"), []step{{120_000, "push right", "METHOD_EXPIRED"},
			{120_000, "push wrong", "METHOD_EXPIRED"}}},
		{"TOTP on its own", short, []step{{300_000, "totp right", "METHOD_EXPIRED"}}},
		{"challenge before", start(1, "totp"), []step{{599_999, "totp right", "executing"}}},
		{"challenge on it", start(1, "totp"), []step{{600_000, "totp right", "CHALLENGE_EXPIRED"},
			{600_000, "totp wrong", "CHALLENGE_EXPIRED"}}},
		{"challenge after", start(1, "totp"), []step{{600_001, "totp right", "CHALLENGE_EXPIRED"}}},
		{"challenge and method", start(1, "sms", "totp"), []step{{599_999, "sms right", "METHOD_EXPIRED"},
			{600_000, "sms right", "CHALLENGE_EXPIRED"}}},
		{"an expired value is not counted", start(1, "sms", "totp"), []step{
			{120_000, "sms wrong",
				"METHOD_EXPIRED | METHOD_EXPIRED | METHOD_EXPIRED | METHOD_EXPIRED | METHOD_EXPIRED | METHOD_EXPIRED"},
			{120_000, "sms renew", "pending"}, {120_000, "sms wrong", "OTP_INVALID 4"}}},
	})
}

// Attempts are limited per OTP and per challenge; attemptsLeft is the smaller remainder (D-2FA-13, SEC-01).
func TestAttempts(t *testing.T) {
	const five = "OTP_INVALID 4 | OTP_INVALID 3 | OTP_INVALID 2 | OTP_INVALID 1 | OTP_INVALID 0"
	play(t, []scenario{
		{"right after five", start(1, "sms"), []step{{0, "sms wrong", five}, {0, "sms right", "METHOD_LOCKED"}}},
		{"a sixth is not counted", start(1, "sms", "mail"), []step{
			{0, "sms wrong", five + " | METHOD_LOCKED | METHOD_LOCKED | METHOD_LOCKED"}, {0, "mail wrong", "OTP_INVALID 4"}}},
		{"the tenth closes", start(1, "sms", "mail", "totp"), []step{
			{0, "sms wrong", five}, {0, "mail wrong", five}, {0, "totp right", "CHALLENGE_CLOSED"},
			{60_000, "mail renew", "CHALLENGE_CLOSED"}, {600_000, "totp right", "CHALLENGE_CLOSED"}}},
		{"the challenge has less left than the method", start(1, "sms", "mail", "totp"), []step{
			{0, "sms wrong", "OTP_INVALID 4 | OTP_INVALID 3 | OTP_INVALID 2 | OTP_INVALID 1"},
			{0, "mail wrong", "OTP_INVALID 4 | OTP_INVALID 3 | OTP_INVALID 2 | OTP_INVALID 1"},
			{0, "totp wrong", "OTP_INVALID 1 | OTP_INVALID 0 | CHALLENGE_CLOSED"}}},
		{"renewals do not give the challenge more", start(1, "sms"), []step{
			{60_000, "sms wrong", five}, {60_000, "sms renew", "pending"},
			{60_000, "sms wrong", "OTP_INVALID 4 | OTP_INVALID 3"}, {60_000, "sms renew", "pending"},
			{60_000, "sms wrong", "OTP_INVALID 2 | OTP_INVALID 1 | OTP_INVALID 0 | CHALLENGE_CLOSED"}}},
		{"a wrong signature is not counted", start(1, "push", "sms"), []step{
			{0, "push wrong", "DEVICE_SIGNATURE_INVALID | DEVICE_SIGNATURE_INVALID | DEVICE_SIGNATURE_INVALID" +
				" | DEVICE_SIGNATURE_INVALID | DEVICE_SIGNATURE_INVALID | DEVICE_SIGNATURE_INVALID"},
			{0, "sms wrong", "OTP_INVALID 4"}, {0, "push right", "executing"}}},
	})
}

// A refusal ends the challenge, whatever methods are missing or locked (D-2FA-09).
func TestDenial(t *testing.T) {
	play(t, []scenario{
		{"at once", start(1, "push", "sms"), []step{
			{0, "push deny", "denied"}, {0, "push deny", "CHALLENGE_CLOSED"}, {0, "push right", "CHALLENGE_CLOSED"},
			{0, "sms right", "CHALLENGE_CLOSED"}}},
		{"with methods missing", start(3, "push", "sms", "mail!"), []step{{0, "push deny", "denied"}}},
		{"in the last millisecond", start(1, "push"), []step{{119_999, "push deny", "denied"}}},
		{"after the last method", start(1, "push", "sms"), []step{{0, "sms right", "executing"},
			{0, "push deny", "METHOD_ALREADY_COMPLETED"}}},
		{"action never runs", start(1, "push"), []step{{0, "push deny", "denied"}, {0, "finish", "denied"}}},
	})
	c := start(1, "push", "sms")
	s, err := c.Complete(at(5), challenge.DefaultRules(), challenge.Budget{}, answer(c.Methods[0], "deny"))
	if err != nil || s.Verdict != challenge.Refusal || s.Refusal != nil || s.Budget != nil {
		t.Fatalf("step %+v, %v", s, err)
	}
	if s.Next.Completed() || len(s.Next.CompletedMethods()) > 0 || s.Next.Last != "push" {
		t.Errorf("completed %t with %v, ended by %q", s.Next.Completed(), s.Next.CompletedMethods(), s.Next.Last)
	}
}

// The order of the checks: for every combination of faults, the first one in this order is reported.
func TestOrderOfCompletionChecks(t *testing.T) {
	type attempt struct {
		c challenge.Challenge
		b challenge.Budget
		a challenge.Answer
	}
	const now = 100_000
	faults := []struct {
		want string
		make func(*attempt)
	}{
		{"METHOD_NOT_FOUND", func(x *attempt) { x.a.MethodID = "none" }},
		{"INVALID_FIELD", func(x *attempt) { x.a.Method = challenge.MAIL }},
		{"CHALLENGE_CLOSED", func(x *attempt) { x.c.State = challenge.Closed }}, // an ended challenge does not expire
		{"CHALLENGE_EXPIRED", func(x *attempt) { x.c.ExpiresAt = t0 + now }},
		{"METHOD_ALREADY_COMPLETED", func(x *attempt) { x.c.Methods[0].Order = 1 }},
		{"METHOD_LOCKED", func(x *attempt) { x.c.Methods[0].Wrong = 5 }},
		{"METHOD_EXPIRED", func(x *attempt) { x.c.Methods[0].ExpiresAt = t0 + now }},
		{"RATE_LIMITED 59m59.999s", func(x *attempt) { x.b.OTP = slices.Repeat([]int64{t0 + now - 1}, 20) }},
		{"OTP_INVALID 4", func(x *attempt) { x.a.Digests = nil }},
	}
	for set := range 1 << len(faults) {
		x := attempt{c: start(2, "sms", "mail")}
		x.a = answer(x.c.Methods[0], "right")
		want := "pending"
		for i := len(faults) - 1; i >= 0; i-- {
			if set&(1<<i) != 0 {
				faults[i].make(&x)
				want = faults[i].want
			}
		}
		g := newGame(t, x.c)
		g.b = x.b
		storetest.Equal(t, g.complete(now, x.a), want, "faults", set)
	}
}

func TestMethodIDAndName(t *testing.T) {
	c := start(1, "sms", "mail")
	a := answer(c.Methods[0], "right")
	a.Method = challenge.MAIL
	_, err := c.Complete(at(0), challenge.DefaultRules(), challenge.Budget{}, a)
	if f, ok := err.(*fault.Error); !ok || f.Code != fault.InvalidField || f.Field != "method" {
		t.Errorf("got %v, want INVALID_FIELD of method", err)
	}
	_, err = c.Renew(at(60_000), challenge.DefaultRules(), "sms", challenge.MAIL, stored("x"))
	if f, ok := err.(*fault.Error); !ok || f.Code != fault.InvalidField || f.Field != "method" {
		t.Errorf("got %v, want INVALID_FIELD of method", err)
	}
}
