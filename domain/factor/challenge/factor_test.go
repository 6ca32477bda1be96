package challenge_test

import (
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
)

// The number of consecutive wrong values has no window, and a right one resets it. At the limit every value is wrong
// (D-2FA-13).
func TestConsecutiveWrongValues(t *testing.T) {
	r := challenge.DefaultRules()
	r.OTPBudget, r.TOTPBudget = 1000, 1000
	answered := func(b challenge.Budget, id, value string) challenge.Step {
		t.Helper()
		c := start(2, "sms", "mail", "totp")
		for _, m := range c.Methods {
			if m.ID == id {
				s, err := c.Complete(at(5), r, b, answer(m, value))
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
		}
		panic(id)
	}
	b := challenge.Budget{Subject: "u1", Flow: challenge.FlowLogin, OTPRow: 98, TOTPRow: 99}
	s := answered(b, "sms", "wrong")
	if s.Row != 99 || s.Budget.OTPRow != 99 || s.Budget.TOTPRow != 99 || s.Budget.Off(r, challenge.MAIL) {
		t.Errorf("the 99th: %+v", s)
	}
	if ended := answered(*s.Budget, "mail", "right"); ended.Verdict != challenge.Right || ended.Budget.OTPRow != 0 ||
		ended.Budget.TOTPRow != 99 || ended.Row != 0 {
		t.Errorf("a right value: %+v", ended)
	}
	s = answered(*s.Budget, "mail", "wrong")
	if s.Row != 100 || !s.Budget.Off(r, challenge.SMS) || s.Budget.Off(r, challenge.TOTP) {
		t.Errorf("the 100th: %+v", s)
	}
	s = answered(*s.Budget, "sms", "right")
	if s.Verdict != challenge.Wrong || fault.CodeOf(s.Refusal) != fault.OTPInvalid || s.Row != 0 ||
		s.Budget.OTPRow != 100 {
		t.Errorf("a right value of a factor that is off: %+v", s)
	}
	if s := answered(challenge.Budget{}, "sms", "right"); s.Budget != nil {
		t.Errorf("a right value after no wrong one costs a write: %+v", s.Budget)
	}
}
