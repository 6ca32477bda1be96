package stepup

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
)

// outcome seals a result as the owner of a challenge does.
func (p *ports) outcome(id string, r challenge.Result) Answered {
	plain := storetest.Value(r.AppendBinary(nil))(p.t)
	return Answered{Action: "LOGIN", Final: true, Outcome: p.m.Ring.Seal(plain, challenge.OutcomeData(id))}
}

// A code is compared by its digest, without the characters that pasting adds.
func TestCompleteByCode(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	p.answered = p.outcome("c1", challenge.Result{Success: true, UserID: "u1", SessionID: "s1"})
	a := Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.SMS, Value: " 123 456 ", Remember: true}
	got, err := p.Complete(t.Context(), a)
	storetest.Must(t, err)
	if got.Action != "LOGIN" || got.ChallengeID != "c1" || !got.Final || got.Result == nil ||
		got.Result.SessionID != "s1" {
		t.Errorf("%+v", got)
	}
	sum := p.m.Ring.Hash("otp", "c1", "m1", "123456")
	in := p.answers[0]
	if in.MethodID != "m1" || in.Method != challenge.SMS || !in.Remember || in.Verdict != challenge.Undecided ||
		len(in.Digests) != 1 || in.Digests[0].Key != sum.Key || string(in.Digests[0].Sum) != string(sum.Sum) {
		t.Errorf("%+v", in)
	}
	p.dead["s1"] = true
	_, err = p.Complete(t.Context(), a)
	storetest.Wants(t, err, fault.ChallengeClosed)
	p.answered = Answered{Action: "LOGIN"}
	got, err = p.Complete(t.Context(), a)
	if err != nil || got.Final || got.Result != nil || got.ChallengeID != "c1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, damaged := range [][]byte{[]byte("damaged"), p.m.Ring.Seal([]byte{99}, challenge.OutcomeData("c1"))} {
		p.answered = Answered{Outcome: damaged}
		if got, err := p.Complete(t.Context(), a); err == nil {
			t.Errorf("%+v", got)
		}
	}
}

// A judge decides what no digest can. An answer whose data changed meanwhile is judged again, at most five times.
func TestCompleteByJudge(t *testing.T) {
	p := newPorts(t, 1, "TOTP")
	judged := 0
	fails := error(nil)
	p.Judges[challenge.TOTP] = func(_ context.Context, userID string, a Answer) (challenge.Verdict, *challenge.Use,
		error) {
		if judged++; userID != "u1" || a.Value != "123456" {
			t.Errorf("%q, %+v", userID, a)
		}
		return challenge.Right, &challenge.Use{Key: "step"}, fails
	}
	a := Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.TOTP, Value: "123456"}
	p.overtaken = 4
	if _, err := p.Complete(t.Context(), a); err != nil || judged != 5 || p.answers[4].Verdict != challenge.Right ||
		p.answers[4].Use.Key != "step" {
		t.Errorf("%d, %v", judged, err)
	}
	p.overtaken = 5
	_, err := p.Complete(t.Context(), a)
	storetest.Wants(t, err, fault.Unavailable)
	var f *fault.Error
	if !errors.As(err, &f) || f.RetryAfter != time.Second || judged != 10 {
		t.Errorf("%v, %d", err, judged)
	}
	p.overtaken = 0
	fails, p.answers = errDown, nil
	if _, err := p.Complete(t.Context(), a); !errors.Is(err, errDown) || len(p.answers) != 0 {
		t.Error(err)
	}
}

// A push is approved or denied by a device of the user of its challenge, with a proof.
func TestCompleteByDevice(t *testing.T) {
	right := func() (*ports, Answer) {
		p := newPorts(t, 1, "PUSH")
		p.signed, p.claims = device.Device{ID: "d1", UserID: "u1"}, device.Claims{Intent: "digest"}
		p.rows["c1"] = challenge.Challenge{ID: "c1", Body: challenge.Body{Methods: []challenge.Method{
			{ID: "m1", Name: challenge.PUSH, Number: "42"}, {ID: "m2", Name: challenge.PUSH}}}}
		return p, Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.PUSH, Value: "APPROVED",
			Signed: device.Request{Proof: "proof"}}
	}
	for value, want := range map[string]challenge.Verdict{"APPROVED": challenge.Right, "DENIED": challenge.Refusal,
		"APPROVED:42": challenge.Right} {
		p, a := right()
		a.Value = value
		_, err := p.Complete(t.Context(), a)
		storetest.Must(t, err)
		in := p.answers[0]
		if in.Verdict != want || in.Intent != "digest" || in.Proof.DeviceID != "d1" || in.Proof.JWS != "proof" ||
			in.Use.Key != "d1" || in.Use.Value != p.now.UnixMilli() {
			t.Errorf("%s: %+v, %+v", value, in, in.Use)
		}
	}
	for name, c := range map[string]struct {
		change func(*ports, *Answer)
		want   fault.Code
	}{
		"no decision":            {func(_ *ports, a *Answer) { a.Value = "approved" }, fault.InvalidField},
		"a space":                {func(_ *ports, a *Answer) { a.Value = "APPROVED " }, fault.InvalidField},
		"a short number":         {func(_ *ports, a *Answer) { a.Value = "APPROVED:4" }, fault.InvalidField},
		"no number":              {func(_ *ports, a *Answer) { a.Value = "APPROVED:4x" }, fault.InvalidField},
		"a denial with a number": {func(_ *ports, a *Answer) { a.Value = "DENIED:42" }, fault.InvalidField},
		"a number of another method": {func(_ *ports, a *Answer) { a.Value, a.MethodID = "APPROVED:42", "m2" },
			fault.InvalidField},
		"a number, unknown challenge": {func(_ *ports, a *Answer) { a.Value, a.ChallengeID = "APPROVED:42", "c2" },
			fault.InvalidField},
		"no proof":        {func(_ *ports, a *Answer) { a.Signed.Proof = "" }, fault.DeviceSignatureRequired},
		"no devices":      {func(p *ports, _ *Answer) { p.Answerer.Devices = nil }, fault.DeviceSignatureInvalid},
		"of another user": {func(p *ports, _ *Answer) { p.user = "u2" }, fault.DeviceSignatureInvalid},
		"of a decoy":      {func(p *ports, _ *Answer) { p.user = "" }, fault.DeviceSignatureInvalid},
		"a decoy, and no user": {func(p *ports, _ *Answer) { p.user, p.signed.UserID = "", "" },
			fault.DeviceSignatureInvalid},
	} {
		p, a := right()
		c.change(p, &a)
		if _, err := p.Complete(t.Context(), a); fault.CodeOf(err) != c.want || len(p.answers) != 0 {
			t.Errorf("%s: %v, %d answers", name, err, len(p.answers))
		}
	}
	for _, fail := range []string{"Answered", "User", "Load", "Complete"} {
		p, a := right()
		p.fail, a.Value = fail, "APPROVED:42"
		if _, err := p.Complete(t.Context(), a); !errors.Is(err, errDown) || (len(p.answers) != 0) != (fail == "Complete") {
			t.Errorf("%s: %v", fail, err)
		}
	}
	p, a := right() // the proof of a code is not required, but it must be valid
	a.Method, a.DeviceID, a.Value, p.fail = challenge.SMS, "d1", "123456", "Answered"
	if _, err := p.Complete(t.Context(), a); !errors.Is(err, errDown) || len(p.answers) != 0 {
		t.Error(err)
	}
	p.fail = ""
	if _, err := p.Complete(t.Context(), a); err != nil || p.answers[0].Proof.DeviceID != "d1" || p.answers[0].Use != nil {
		t.Error(err)
	}
	a.DeviceID, p.fail = "", "Answered"
	if _, err := p.Complete(t.Context(), a); err != nil {
		t.Error(err)
	}
}

// A passkey of the user approves a push. It never denies one.
func TestCompleteByPasskey(t *testing.T) {
	right := func() (*ports, Answer) {
		p := newPorts(t, 1, "PUSH")
		p.asserted = passkeyOfAlice
		return p, Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.PUSH, Value: "APPROVED",
			Assertion: []byte("assertion")}
	}
	p, a := right()
	_, err := p.Complete(t.Context(), a)
	storetest.Must(t, err)
	in := p.answers[0]
	if in.Verdict != challenge.Right || in.Intent != "digest" || in.Proof.DeviceID != "d5" || in.Proof.JWS != "kept" ||
		in.Use.Key != passkeyOfAlice.Use.Key() || in.Use.Value != 77 {
		t.Errorf("%+v", in)
	}
	for name, change := range map[string]func(*ports, *Answer){
		"a denial":        func(_ *ports, a *Answer) { a.Value = "DENIED" },
		"no devices":      func(p *ports, _ *Answer) { p.Answerer.Devices = nil },
		"of another user": func(p *ports, _ *Answer) { p.user = "u2" },
		"of a decoy":      func(p *ports, _ *Answer) { p.user, p.asserted.Passkey.UserID = "", "" },
	} {
		p, a := right()
		change(p, &a)
		if _, err := p.Complete(t.Context(), a); fault.CodeOf(err) != fault.DeviceSignatureInvalid || len(p.answers) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, fail := range []string{"Assert", "User", "Counted"} {
		p, a := right()
		p.fail = fail
		if _, err := p.Complete(t.Context(), a); !errors.Is(err, errDown) || len(p.answers) != 0 {
			t.Errorf("%s: %v", fail, err)
		}
	}
	// A login by a passkey needs no further method: the use of its ticket counts once.
	p, _ = right()
	p.answered = p.outcome("c1", challenge.Result{Success: true, UserID: "u1", SessionID: "s1"})
	c := challenge.Challenge{ID: "c1", Body: challenge.Body{IntentDigest: "of the challenge",
		Methods: []challenge.Method{{ID: "m1", Name: challenge.PUSH}}}}
	r, err := p.Conclude(t.Context(), c, passkeyOfAlice, a.By)
	in = p.answers[0]
	spent := passkeyOfAlice.Use
	spent.Seen = 2
	if err != nil || r.SessionID != "s1" || in.MethodID != "m1" || in.Method != challenge.PUSH ||
		in.Verdict != challenge.Right || in.Intent != "of the challenge" || in.Use.Key != spent.Key() ||
		in.Use.Value != 77 || len(in.Digests) != 1 || in.Proof.JWS != "kept" {
		t.Errorf("%+v, %+v, %v", r, in, err)
	}
}

// The use of a device or a passkey commits with the answer that it gives.
func TestUseOfDevice(t *testing.T) {
	c := challenge.Challenge{UserID: "u1"}
	at := time.UnixMilli(77)
	storetest.Same(t, Use(c, challenge.Use{Key: "d1", Value: 77}),
		[]commit.Write{device.Use{UserID: "u1", ID: "d1", At: at}})
	want := passkeyOfAlice.Use
	want.UserID = "u1"
	storetest.Same(t, Use(c, challenge.Use{Key: want.Key(), Value: 77}), []commit.Write{want})
}

// A client waits for an outcome until this node leaves; then another node gives it.
func TestResult(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	p.answered = p.outcome("c1", challenge.Result{Success: true})
	got, err := p.Result(t.Context(), "c1", time.Second)
	if err != nil || got.Result == nil || !got.Result.Success || got.Action != "LOGIN" {
		t.Errorf("%+v, %v", got, err)
	}
	leaving, leave := context.WithCancel(t.Context())
	p.Leaving = leaving
	if _, err := p.Result(t.Context(), "c1", time.Second); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Result(gone, "c1", time.Second); !errors.Is(err, context.Canceled) { // the client has left
		t.Error(err)
	}
	leave()
	p.hold = true
	_, err = p.Result(t.Context(), "c1", time.Second)
	p.hold = false
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.ChallengeNotCompleted || f.RetryAfter != time.Second {
		t.Error(err)
	}
	if _, err := p.Result(t.Context(), "c1", 0); err != nil { // it does not wait
		t.Error(err)
	}
}

// A renewal sends a new code to the destination of the account.
func TestRenew(t *testing.T) {
	right := func(proven bool) *ports {
		p := newPorts(t, 1, "SMS")
		p.renewal = Renewal{UserID: "u1", Subject: "u1", Action: "LOGIN", Generation: 2, LifetimeMs: 90_000, Proven: proven,
			Brief: "1 BTC"}
		return p
	}
	for _, proven := range []bool{true, false} {
		p := right(proven)
		p.overtaken = 2
		c, err := p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
		storetest.Must(t, err)
		m, text := p.renewed, p.opened(p.renewed)
		sum := p.m.Ring.Hash("otp", "c1", "m1", text.Code)
		if c.ID != "c1" || m.ID != "c1.m1.2" || m.UserID != "u1" || m.Proven != proven || m.State != outbox.Queued ||
			m.Prefix != "203.0.113.9/32" || !m.ExpiresAt.Equal(p.now.Add(90*time.Second)) || !m.CreatedAt.Equal(p.now) ||
			text.To != phoneA || text.Language != "tr" || len(p.post.rows) != 1 || string(p.digest.Sum) != string(sum.Sum) {
			t.Errorf("%+v, %+v, %+v", c, m, text)
		}
		p.overtaken = 3
		_, err = p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
		storetest.Wants(t, err, fault.Unavailable)
		if !errors.As(err, new(*fault.Error)) || len(p.post.rows) != 1 {
			t.Errorf("%v, %d sent", err, len(p.post.rows))
		}
	}
	for _, fail := range []string{"CheckRenew", "Account", "Spent", "Usage", "Send", "Renew"} {
		p := right(false)
		p.fail = fail
		if _, err := p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice); !errors.Is(err, errDown) ||
			len(p.post.rows) != 0 {
			t.Errorf("%s: %v", fail, err)
		}
	}
	p := right(true)
	p.renewal.UserID = "gone"
	_, err := p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
	storetest.Wants(t, err, fault.ChallengeClosed)
}

// A cap refuses the renewal of a starter with a proof, and holds back the code of another one.
func TestRenewWithinCaps(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	p.renewal = Renewal{UserID: "u1", Action: "LOGIN", LifetimeMs: 90_000, Proven: true}
	p.all = 100
	_, err := p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.RateLimited || f.RetryAfter != time.Minute || f.Limit != countryCap ||
		p.m.Capped.Load() != 1 {
		t.Error(err)
	}
	p.all, p.send = 99, false
	p.m.Config.Caps = Caps{UserDay: 1}
	p.sent = []outbox.Sending{{At: p.now.Add(-time.Hour).UnixMilli()}}
	_, err = p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
	if !errors.As(err, &f) || f.Code != fault.RateLimited || f.RetryAfter != 23*time.Hour || p.m.Capped.Load() != 2 {
		t.Error(err)
	}
	p.renewal.Proven = false
	for _, held := range []func(){func() {}, func() { p.send, p.unproven = true, 50 },
		func() { p.unproven, p.usage = 0, 10 }} {
		held()
		_, err = p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
		if err != nil || p.renewed.State != outbox.Discarded || p.m.Capped.Load() != 2 {
			t.Errorf("%v, state %d, %d capped", err, p.renewed.State, p.m.Capped.Load())
		}
	}
	p.unproven, p.usage = 49, 9
	if _, err = p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice); err != nil || p.renewed.State != outbox.Queued {
		t.Errorf("%v, state %d", err, p.renewed.State)
	}
}

// The renewal of a decoy takes the same steps and sends nothing. That of an applicant reads its destination from the
// command.
func TestRenewWithoutUser(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	p.renewal = Renewal{Subject: "?x", Decoy: true, Hint: "+90********01", Action: "LOGIN", LifetimeMs: 90_000}
	_, err := p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
	if err != nil || p.renewed.UserID != "?x" || p.renewed.State != outbox.Discarded ||
		p.opened(p.renewed).To != "+90********01" {
		t.Errorf("%+v, %v", p.renewed, err)
	}
	action := p.Starter.Actions["LOGIN"]
	action.Reach = func(_ context.Context, command []byte) (challenge.Account, []challenge.Name, error) {
		return challenge.Account{Phone: string(command), Mail: mailA}, []challenge.Name{challenge.MAIL}, nil
	}
	p.Starter.Actions["LOGIN"] = action
	p.sealed = p.m.Ring.Seal([]byte(phoneA), challenge.CommandData("c1"))
	_, err = p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice)
	if err != nil || p.renewed.State != outbox.Queued || p.opened(p.renewed).To != phoneA {
		t.Errorf("%+v, %v", p.renewed, err)
	}
	_, err = p.Renew(t.Context(), "c1", "m1", challenge.MAIL, byAlice)
	if err != nil || p.renewed.State != outbox.Discarded {
		t.Errorf("%+v, %v", p.renewed, err)
	}
	p.sealed = []byte("damaged")
	if _, err = p.Renew(t.Context(), "c1", "m1", challenge.SMS, byAlice); err == nil {
		t.Error("a damaged command is accepted")
	}
}

// A step commits only while the credentials of its user and the counted wrong values are unchanged.
func TestGuardsOfStep(t *testing.T) {
	c := challenge.Challenge{UserID: "u1", Body: challenge.Body{CV: 5, Subject: "?s"}}
	b := challenge.Budget{Subject: "u1", Flow: challenge.FlowLogin, Version: 6}
	storetest.Same(t, Guards(c, b), []commit.Write{
		commit.Guard{On: commit.AttemptBudget, Key: b.Key(), Version: 6},
		commit.Guard{On: commit.UserCredentials, Key: "u1", Version: 5}})
	c.Kind = challenge.Decoy
	storetest.Same(t, Credentials(c), commit.Guard{On: commit.UserCredentials, Key: "?s", Version: 5})
}
