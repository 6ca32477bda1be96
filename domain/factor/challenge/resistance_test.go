package challenge_test

import (
	"fmt"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
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
				if got := g.complete(0, a); got != want {
					t.Errorf("%+v, %s %s: %s, want %s", k, verb, jws, got, want)
				}
			}
			g := newGame(t, c)
			m, _ := c.Method("totp")
			a := answer(m, "right")
			a.Proof = &challenge.Proof{DeviceID: "d", JWS: jws}
			if got, want := g.complete(0, a), [...]string{"executing", refused}[i]; got != want {
				t.Errorf("%+v, totp %s: %s, want %s", k, jws, got, want)
			}
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
		if got := newGame(t, c).complete(0, a); got != want {
			t.Errorf("%s: %s, want %s", jws, got, want)
		}
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
		if got := newGame(t, x).complete(0, a); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The sealed texts of a challenge have names of their own.
func TestNamesOfSealedTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{{string(challenge.OutcomeData("c")), "outcome/c"},
		{string(challenge.CommandData("c")), "command/c"}, {string(challenge.IntentData("c")), "intent/c"},
		{string(challenge.PayloadData("c", "m", 12)), "payload/c/m/12"}} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	if m, ok := start(1, "sms").Method("none"); ok || m.ID != "" {
		t.Error(fmt.Sprint("a method that the challenge does not have: ", m))
	}
}

// A budget without a limit counts nothing.
func TestBudgetWithoutLimit(t *testing.T) {
	b := challenge.Budget{Subject: "u1"}.Spend(at(0), challenge.Rules{}, challenge.PUSH)
	if len(b.OTP)+len(b.TOTP)+int(b.OTPRow)+int(b.TOTPRow) != 0 {
		t.Errorf("%+v", b)
	}
}
