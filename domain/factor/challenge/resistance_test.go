package challenge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/storetest"
)

// The proof of an approval must be of a kind that its challenge accepts. A denial needs none, and an assertion
// answers nothing but a push.
func TestProofsOfApprovals(t *testing.T) {
	type kind struct {
		resistant, passkeys bool
		entry               challenge.Entry
	}
	const refused = "DEVICE_SIGNATURE_INVALID"
	for k, want := range map[kind][2]string{ // with a signature of a device, and with an assertion of a passkey
		{}:                                       {"executing", refused},
		{passkeys: true}:                         {"executing", "executing"},
		{resistant: true}:                        {refused, refused},
		{resistant: true, passkeys: true}:        {refused, "executing"},
		{passkeys: true, entry: challenge.Key}:   {"executing", refused},
		{passkeys: true, entry: challenge.Alone}: {refused, "executing"},
		{entry: challenge.Alone}:                 {refused, refused},
	} {
		for i, jws := range []string{"a.b.c", passkey.Text + "e30"} {
			c := start(1, "push", "totp")
			c.Resistant, c.Passkeys, c.Entry = k.resistant, k.passkeys, k.entry
			for verb, want := range map[string]string{"right": want[i], "deny": map[bool]string{true: refused,
				false: "denied"}[i == 1]} {
				g := newGame(t, c)
				m, _ := c.Method("push")
				a := answer(m, verb)
				a.Proof = &challenge.Proof{DeviceID: "d", JWS: jws}
				storetest.Equal(t, g.complete(0, a), want, k, verb, jws)
			}
			g := newGame(t, c)
			m, _ := c.Method("totp")
			a := answer(m, "right")
			a.Proof = &challenge.Proof{DeviceID: "d", JWS: jws}
			storetest.Equal(t, g.complete(0, a), [...]string{"executing", refused}[i], k, "totp", jws)
		}
	}
}

// A passkey needs no number, since the browser of the starter makes its assertion.
func TestAssertionNeedsNoNumber(t *testing.T) {
	for jws, want := range map[string]string{"a.b.c": "OTP_INVALID 4", passkey.Text + "e30": "executing"} {
		c := start(1, "push")
		c.Passkeys, c.Methods[0].Number, c.Methods[0].Digest = true, "42", stored("APPROVED:42")
		a := answer(c.Methods[0], "right")
		a.Proof = &challenge.Proof{DeviceID: "d", JWS: jws}
		storetest.Equal(t, newGame(t, c).complete(0, a), want, jws)
	}
}

// A claim of the intent must be that of the challenge. It may be absent, unless the policy requires it of a push.
func TestSignedIntents(t *testing.T) {
	for _, c := range []struct {
		method, claim string
		required      bool
		want          string
	}{
		{"push", "", false, "executing"}, {"push", "", true, "DEVICE_SIGNATURE_INVALID"},
		{"push", "digest", true, "executing"}, {"push", "digest", false, "executing"},
		{"push", "other", false, "DEVICE_SIGNATURE_INVALID"}, {"totp", "", true, "executing"},
		{"totp", "other", true, "DEVICE_SIGNATURE_INVALID"},
	} {
		x := start(1, c.method)
		x.SignIntent, x.IntentDigest = c.required, "digest"
		a := answer(x.Methods[0], "right")
		a.Intent = c.claim
		storetest.Equal(t, newGame(t, x).complete(0, a), c.want, c)
	}
}

// The sealed texts of a challenge have names of their own.
func TestNamesOfSealedTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{{string(challenge.OutcomeData("c")), "outcome/c"},
		{string(challenge.CommandData("c")), "command/c"}, {string(challenge.IntentData("c")), "intent/c"},
		{string(challenge.PayloadData("c", "m", 12)), "payload/c/m/12"}} {
		storetest.Equal(t, c.got, c.want)
	}
	if m, ok := start(1, "sms").Method("none"); ok || m.ID != "" {
		t.Error(fmt.Sprint("a method that the challenge does not have: ", m))
	}
}

// A budget without a limit counts nothing.
func TestBudgetWithoutLimit(t *testing.T) {
	b := challenge.Budget{Subject: "u1"}.Spend(at(0), challenge.Rules{}, challenge.PUSH)
	storetest.Equal(t, len(b.OTP)+len(b.TOTP)+int(b.OTPRow)+int(b.TOTPRow), 0, b)
}

// Number matching (SEC-16): a signed approval counts only with the number. A wrong number counts for the challenge
// and for no budget. A user without attempts left may still refuse.
func TestNumberMatching(t *testing.T) {
	with := func(ids ...string) *game {
		c := start(1, ids...)
		i := slices.IndexFunc(c.Methods, func(m challenge.Method) bool { return m.Name == challenge.PUSH })
		c.Methods[i].Number, c.Methods[i].Digest = "42", stored("APPROVED:42")
		return newGame(t, c)
	}
	approve := func(g *game, value string, v challenge.Verdict) string {
		m, _ := g.c.Method("push")
		a := typed(m, value)
		a.Verdict = v
		return g.complete(0, a)
	}
	g := with("push", "sms")
	for _, c := range []struct {
		value string
		v     challenge.Verdict
		want  string
		wrong int
	}{
		{"APPROVED:42", challenge.Wrong, "DEVICE_SIGNATURE_INVALID", 0}, // the number without the signature
		{"APPROVED:43", challenge.Right, "OTP_INVALID 4", 1},
		{"APPROVED", challenge.Right, "OTP_INVALID 3", 2},
		{"APPROVED:42", challenge.Right, "executing", 2},
		{"APPROVED:43", challenge.Right, "METHOD_ALREADY_COMPLETED", 2},
	} {
		if got := approve(g, c.value, c.v); got != c.want || g.c.Wrong != c.wrong || len(g.b.OTP)+len(g.b.TOTP) > 0 {
			t.Errorf("%s: %s, %d wrong, budget %+v; want %s, %d", c.value, got, g.c.Wrong, g.b, c.want, c.wrong)
		}
	}
	m, _ := g.c.Method("push")
	if !g.c.Repeat(typed(m, "APPROVED:42")) || g.c.Repeat(typed(m, "APPROVED:43")) {
		t.Error("the repeat is not known by its number")
	}

	g = with("push")
	for range 5 {
		approve(g, "APPROVED:11", challenge.Right)
	}
	storetest.Equal(t, approve(g, "APPROVED:42", challenge.Right), "METHOD_LOCKED", "after five")
	storetest.Equal(t, approve(g, "DENIED", challenge.Refusal), "denied", "a refusal")

	g = with("push", "sms")
	g.c.Wrong = 9
	if got := approve(g, "APPROVED:11", challenge.Right); got != "OTP_INVALID 0" || g.c.State != challenge.Closed ||
		g.c.Reason != challenge.TooManyWrong {
		t.Errorf("the tenth: %s in state %s", got, stateNames[g.c.State])
	}
}

// A changed document, command or digest is not what was shown, whatever the change.
func TestShownIsExact(t *testing.T) {
	command := []byte("the sealed command")
	d := intent.Document{Version: 1, ChallengeID: "c1", Action: "WITHDRAW", UserID: "u1", CreatedAt: 1, Language: "en",
		Title: "Withdrawal", Rows: []intent.Row{{Key: "amount", Label: "Amount", Value: "0.5 BTC"}},
		CommandDigest: intent.Digest(command)}
	document := d.Canonical()
	c := challenge.Challenge{ID: "c1", Action: "WITHDRAW", Body: challenge.Body{IntentDigest: intent.Digest(document)}}
	if !c.Shown(document, command) {
		t.Fatal("the document and the command are refused")
	}
	flip := func(b []byte) []byte {
		out := append([]byte(nil), b...)
		out[rand.IntN(len(out))] ^= byte(1 + rand.IntN(255))
		return out
	}
	for range 100_000 {
		switch changed := c; rand.IntN(4) {
		case 0:
			if c.Shown(flip(document), command) {
				t.Fatal("a changed document was accepted")
			}
		case 1:
			if c.Shown(document, flip(command)) {
				t.Fatal("a changed command was accepted")
			}
		case 2:
			changed.IntentDigest = string(flip([]byte(c.IntentDigest)))
			if changed.Shown(document, command) {
				t.Fatal("a changed digest was accepted")
			}
		default: // another valid document of the same command
			other := d
			other.Rows = []intent.Row{{Key: "amount", Label: "Amount", Value: string(flip([]byte("0.5 BTC")))}}
			if text := other.Canonical(); c.Shown(text, command) {
				t.Fatalf("%s was accepted", text)
			}
		}
	}
	for name, other := range map[string]challenge.Challenge{
		"another challenge": {ID: "c2", Action: c.Action, Body: c.Body},
		"another action":    {ID: c.ID, Action: "LOGIN", Body: c.Body}} {
		if other.Shown(document, command) {
			t.Errorf("%s accepts the document", name)
		}
	}
}
