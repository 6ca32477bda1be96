package challenge_test

import (
	"context"
	"slices"
	"testing"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// notices record the kinds of notices.
type notices struct{ got []string }

func (n *notices) Notice(to challenge.Account, k message.Kind, v message.Values, ip string) []commit.Write {
	n.got = append(n.got, to.UserID+" "+string(k)+" "+v["reason"]+" "+ip)
	return []commit.Write{commit.Unflushed{}}
}

// The owner is notified at the tenth consecutive wrong value, and when the factor is switched off.
func TestNoticesOfWrongValues(t *testing.T) {
	r := challenge.Rules{FactorAttempts: 30}
	off := func(f challenge.Flow, n challenge.Name) commit.Write {
		return challenge.SwitchOff{UserID: "u1", Factor: challenge.FactorOf(f, n)}
	}
	for _, c := range []struct {
		row    int
		flow   challenge.Flow
		name   challenge.Name
		notice string
		writes []commit.Write
	}{
		{9, challenge.FlowLogin, challenge.SMS, "", nil}, {11, challenge.FlowLogin, challenge.SMS, "", nil},
		{10, challenge.FlowLogin, challenge.SMS, "u1 " + string(message.FactorGuessed) + " SMS, MAIL ip",
			[]commit.Write{commit.Unflushed{}}},
		{10, challenge.FlowLogin, challenge.TOTP, "u1 " + string(message.FactorGuessed) + " TOTP ip",
			[]commit.Write{commit.Unflushed{}}},
		{30, challenge.FlowRecovery, challenge.TOTP, "u1 " + string(message.FactorOff) + " TOTP recovery ip",
			[]commit.Write{commit.Unflushed{}, off(challenge.FlowRecovery, challenge.TOTP)}},
		{30, challenge.FlowSession, challenge.MAIL, "u1 " + string(message.FactorOff) + " SMS, MAIL ip",
			[]commit.Write{commit.Unflushed{}, off(challenge.FlowSession, challenge.SMS)}},
		{31, challenge.FlowLogin, challenge.SMS, "", nil}, {0, challenge.FlowLogin, challenge.SMS, "", nil},
	} {
		var n notices
		writes := challenge.Guessed(&n, challenge.Account{UserID: "u1"}, c.flow, c.name, c.row, r, "ip")
		storetest.Same(t, writes, c.writes)
		if got := append(n.got, "")[0]; got != c.notice || r.Notable(c.row) != (c.notice != "") {
			t.Errorf("%d: %q, notable %t", c.row, got, r.Notable(c.row))
		}
	}
	if (challenge.Rules{}).Notable(0) {
		t.Error("no wrong value is notable without a limit")
	}
}

// Each factor of each flow has its own bit; SMS and MAIL share one.
func TestFactorsAreDistinct(t *testing.T) {
	want := map[challenge.Factors]string{}
	for i, f := range []challenge.Flow{challenge.FlowLogin, challenge.FlowReset, challenge.FlowSession,
		challenge.FlowRecovery} {
		for _, n := range []challenge.Name{challenge.SMS, challenge.TOTP} {
			bit := challenge.FactorOf(f, n)
			place := map[bool]int{true: 2 * i, false: 2*i + 1}[n.Sent()] // as in the rows of former releases
			if bit != 1<<place || want[bit] != "" {
				t.Errorf("%s in %s: %b", n, f, bit)
			}
			want[bit] = string(n)
			if !bit.Has(f, n) || challenge.Factors(0).Has(f, n) {
				t.Errorf("%s in %s", n, f)
			}
		}
		if challenge.FactorOf(f, challenge.MAIL) != challenge.FactorOf(f, challenge.SMS) ||
			challenge.FactorOf(f, challenge.PUSH) != 0 {
			t.Errorf("MAIL or PUSH in %s", f)
		}
	}
	if challenge.FactorOf(challenge.FlowRegister, challenge.SMS) != 0 {
		t.Error("a registration has a factor that is switched off")
	}
	w := challenge.SwitchOn{UserID: "u1"}
	if keys := []string{"u1/LOGIN", "u1/RESET_PASSWORD", "u1/SESSION", "u1/TOTP_RECOVER"}; !slices.Equal(w.Keys(), keys) ||
		w.Row() != "u1" || (challenge.SwitchOff{UserID: "u2"}).Row() != "u2" {
		t.Error(w.Keys())
	}
}

func TestMethodsOfAccount(t *testing.T) {
	for n, a := range map[challenge.Name]challenge.Account{challenge.SMS: {Phone: "+1"}, challenge.MAIL: {Mail: "a@b"},
		challenge.TOTP: {TOTP: true}, challenge.PUSH: {Push: true}} {
		for _, other := range []challenge.Name{challenge.SMS, challenge.MAIL, challenge.TOTP, challenge.PUSH, "NONE"} {
			storetest.Equal(t, a.Owns(other), (n == other), "an account with", n, other)
		}
	}
}

// A challenge without an account belongs to its subject.
func TestOwnerOfChallenge(t *testing.T) {
	for kind, want := range map[challenge.Kind]string{challenge.Real: "u1", challenge.Decoy: "?s",
		challenge.Applicant: "?s"} {
		c := challenge.Challenge{UserID: "u1", Body: challenge.Body{Kind: kind, Subject: "?s"}}
		if c.Owner() != want || kind.Owned() != (want == "u1") {
			t.Errorf("%d: %s", kind, c.Owner())
		}
	}
	pushes := []challenge.Push{{Number: 4}, {Number: 9}, {Number: 2}}
	if challenge.NextPush(pushes) != 10 || challenge.NextPush(nil) != 1 {
		t.Error(challenge.NextPush(pushes), challenge.NextPush(nil))
	}
	for want, r := range map[int]challenge.PushRules{5: {Sent: 5, SentDay: 3, Denials: 4}, 6: {Sent: 5, SentDay: 6},
		7: {Sent: 5, SentDay: 6, Denials: 7}} {
		storetest.Equal(t, r.Most(), want, r)
	}
	r := challenge.DefaultRules()
	b := challenge.Budget{OTP: spread(3, 0), TOTP: spread(4, 0)}
	if b.Left(at(9), r, challenge.SMS) != 17 || b.Left(at(9), r, challenge.TOTP) != 6 ||
		b.Left(at(hour), r, challenge.SMS) != 18 ||
		(challenge.Budget{OTP: spread(25, 0)}).Left(at(30), r, challenge.SMS) != 0 {
		t.Error(b.Left(at(9), r, challenge.SMS), b.Left(at(hour), r, challenge.SMS))
	}
}

// A remembered client completes one method, and the challenge if no other is required.
func TestRecall(t *testing.T) {
	for required, state := range map[int]challenge.State{1: challenge.Executing, 2: challenge.Pending} {
		c := start(required, "push", "sms", "totp")
		c.Methods[0].Number, c.Methods[0].Digest = "42", challenge.Digest{Key: "k", Sum: []byte{1}}
		next := c.Recall(at(5), 0, "client")
		m := next.Methods[0]
		if m.Order != 1 || m.CompletedAt != t0+5 || m.Remembered != "client" || m.Number != "" || m.Digest.Key != "" ||
			next.State != state || (next.Last == "push") != (required == 1) || !next.Remembered() {
			t.Errorf("%d: %+v", required, next)
		}
		if c.Methods[0].Order != 0 || c.Remembered() {
			t.Error("the challenge itself has changed")
		}
		if second := next.Recall(at(6), 1, "client"); second.Methods[1].Order != 2 {
			t.Errorf("%+v", second.Methods[1])
		}
	}
}

// The actions of service clients and of gateways are reached by no request.
func TestActionsOfServices(t *testing.T) {
	as := challenge.Actions{"LOGIN": {Code: "LOGIN"}, challenge.ServiceAction: {Code: "service"},
		challenge.Gateway: {Code: "gateway"}}
	for service, want := range map[string]string{"": "LOGIN", challenge.Gateway: "gateway", "shop": "service"} {
		if a, ok := as.Of("LOGIN", service); a.Code != want || !ok {
			t.Errorf("%q: %s, %t", service, a.Code, ok)
		}
	}
	if _, ok := as.Of("NONE", ""); ok {
		t.Error("an unknown action is found")
	}
	built := func(context.Context, challenge.Execution) (r challenge.Result, w []commit.Write, err error) {
		return r, w, err
	}
	executed := func(context.Context, challenge.Execution) (r challenge.Result, err error) { return r, err }
	prepared := func(context.Context, challenge.Execution) (any, error) { return nil, nil }
	for name, a := range map[string]challenge.Action{"neither": {Code: "x"},
		"both":  {Code: "x", Build: built, Exec: executed},
		"twice": {Code: "LOGIN", Build: built}, "prepared": {Code: "x", Build: built, Prepare: prepared}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is registered", name)
				}
			}()
			as.Register(a)
		}()
	}
	as.Register(challenge.Action{Code: "a", Exec: executed, Prepare: prepared})
	as.Register(challenge.Action{Code: "b", Build: built, Flow: challenge.FlowReset})
	if as["a"].Flow != challenge.FlowSession || as["b"].Flow != challenge.FlowReset {
		t.Errorf("%s, %s", as["a"].Flow, as["b"].Flow)
	}
}

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
				return storetest.Value(c.Complete(at(5), r, b, answer(m, value)))(t)
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
