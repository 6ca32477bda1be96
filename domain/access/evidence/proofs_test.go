package evidence_test

import (
	"reflect"
	"strings"
	"testing"

	"castellan/domain/access/challenge"
	"castellan/domain/access/device"
	"castellan/domain/access/device/devicetest"
	"castellan/domain/access/evidence"
	"castellan/domain/access/intent"
	"castellan/domain/access/mfa"
	"castellan/domain/access/passkey"
	"castellan/domain/access/passkey/passkeytest"
	"castellan/domain/kit/audit"
)

// Evidence lists the completed methods in their order, then a denial, and the row of the outcome.
func TestOf(t *testing.T) {
	c := challenge.Challenge{State: challenge.Done, Body: challenge.Body{PolicyID: 7, Required: 2, IntentDigest: "digest",
		Methods: []challenge.Method{{Name: challenge.PUSH, Order: 2, CompletedAt: 20,
			Proof: &challenge.Proof{DeviceID: "d", JWS: "s", JWK: "k"}}, {Name: challenge.SMS},
			{Name: challenge.TOTP, Order: 1, CompletedAt: 10, Remembered: "r"},
			{Name: challenge.MAIL, CompletedAt: 30}}}}
	row := audit.Stored{Record: audit.Record{Outcome: audit.Success, Detail: "told"}, Chain: "01.0", Seq: 17,
		Hash: []byte{0xab, 1}}
	want := evidence.Evidence{Version: evidence.Version, Document: "{}", IntentDigest: "digest",
		Proofs: []evidence.Proof{{Method: "TOTP", At: 10, Remembered: true},
			{Method: "PUSH", At: 20, DeviceID: "d", JWS: "s", JWK: "k"}, {Method: "MAIL", At: 30}},
		Policy: evidence.Policy{ID: 7, Required: 2, Methods: []string{"PUSH", "SMS", "TOTP", "MAIL"},
			Intent: intent.Optional},
		Outcome: evidence.Outcome{State: "SUCCESS"}, Audit: &evidence.Audit{ID: "01.0/17", Hash: "ab01"}}
	if got := evidence.Of(c, []byte("{}"), &row); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	c.SignIntent, row.Outcome = true, audit.Refused
	want.Policy.Intent, want.Outcome = intent.Required, evidence.Outcome{State: "FAILURE", Detail: "told"}
	if got := evidence.Of(c, []byte("{}"), &row); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for state, want := range map[challenge.State]string{challenge.Pending: "PENDING", challenge.Executing: "EXECUTING",
		challenge.Done: "SUCCESS", challenge.Denied: "DENIED", challenge.Closed: "CLOSED"} {
		got := evidence.Of(challenge.Challenge{State: state}, nil, nil)
		if got.Outcome != (evidence.Outcome{State: want}) || got.Audit != nil || got.Proofs == nil ||
			got.Policy.Methods == nil {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// approval is evidence with a push of a device and a code. sign signs the claims of the push after a change.
type approval struct {
	evidence.Evidence
	sign func(edit func(*device.Claims)) string
}

func approved(t *testing.T, action string) (e approval) {
	t.Helper()
	d := intent.Document{Version: 1, ChallengeID: "c1", Action: action, UserID: "u1", Language: "en", Title: "t",
		Rows: []intent.Row{}}
	e.Evidence = evidence.Evidence{Version: evidence.Version, Document: string(d.Canonical()),
		Policy: evidence.Policy{Required: 2, Intent: intent.Optional}, Outcome: evidence.Outcome{State: "SUCCESS"}}
	e.IntentDigest = intent.Digest(d.Canonical())
	signer, key := devicetest.Signer(t, device.ES256)
	e.sign = func(edit func(*device.Claims)) string {
		t.Helper()
		c := device.Claims{Issuer: "d1", Challenge: "c1", Intent: e.IntentDigest}
		edit(&c)
		jws, err := device.Sign(signer, c)
		if err != nil {
			t.Fatal(err)
		}
		return jws
	}
	e.Proofs = []evidence.Proof{{Method: "PUSH", DeviceID: "d1", JWS: e.sign(func(*device.Claims) {}), JWK: key.JWK()},
		{Method: "SMS"}}
	return e
}

// Verify refuses evidence that does not prove the approval, and names the fault.
func TestVerifyNamesTheFault(t *testing.T) {
	_, other := devicetest.Signer(t, device.ES256)
	for _, c := range []struct {
		name   string
		edit   func(e *approval)
		fault  string // "": none
		signed bool
	}{
		{"right", func(*approval) {}, "", true},
		{"another version", func(e *approval) { e.Version++ }, "v: ", true},
		{"no document", func(e *approval) { e.Document = "{}" }, "document: ",
			true},
		{"another digest", func(e *approval) { e.IntentDigest = "x" },
			"intentDigest: ", false},
		{"another key", func(e *approval) { e.Proofs[0].JWK = other.JWK() },
			"proofs[0]: jws: is not a signature", false},
		{"no key", func(e *approval) { e.Proofs[0].JWK = "" },
			"proofs[0]: jwk: ", false},
		{"another device", func(e *approval) { e.Proofs[0].DeviceID = "d2" },
			"proofs[0]: jws: is of another device", true},
		{"another challenge", func(e *approval) {
			e.Proofs[0].JWS = e.sign(func(c *device.Claims) { c.Challenge = "c2" })
		}, "proofs[0]: jws: is for another challenge", true},
		{"another intent", func(e *approval) {
			e.Proofs[0].JWS = e.sign(func(c *device.Claims) { c.Intent = "x" })
		}, "proofs[0]: jws: is for another document", false},
		{"no intent", func(e *approval) {
			e.Proofs[0].JWS = e.sign(func(c *device.Claims) { c.Intent = "" })
		}, "", false},
		{"no intent, which is required", func(e *approval) {
			e.Policy.Intent, e.Proofs[0].JWS = intent.Required, e.sign(func(c *device.Claims) { c.Intent = "" })
		}, "proofs[0]: jws: does not cover", false},
		{"a code, where an intent is required", func(e *approval) {
			e.Policy.Intent, e.Proofs[1] = intent.Required, e.Proofs[0]
			e.Proofs[1].Method, e.Proofs[1].JWS = "SMS", e.sign(func(c *device.Claims) { c.Intent = "" })
		}, "", false},
		{"no signature of a push", func(e *approval) { e.Proofs[0].JWS = "" },
			"proofs[0]: jws: a push without", true},
		{"a remembered push", func(e *approval) {
			e.Proofs[0].JWS, e.Proofs[0].Remembered = "", true
		}, "", true},
		{"a remembered push, where an intent is required", func(e *approval) {
			e.Policy.Intent, e.Proofs[0].JWS, e.Proofs[0].Remembered = intent.Required, "", true
		}, "proofs[0]: jws: a push without", true},
		{"a missing method", func(e *approval) { e.Proofs = e.Proofs[:1] },
			"proofs: 1 methods are completed, the policy requires 2", true},
		{"a failure with a missing method", func(e *approval) {
			e.Proofs, e.Outcome.State = e.Proofs[:1], "FAILURE"
		}, "proofs: 1 methods are completed, the policy requires 2", true},
		{"a denial with a missing method", func(e *approval) {
			e.Proofs, e.Outcome.State = e.Proofs[:1], "DENIED"
		}, "", true},
	} {
		e := approved(t, mfa.Withdraw)
		c.edit(&e)
		_, err := e.Verify()
		if (err == nil) != (c.fault == "") || err != nil && !strings.HasPrefix(err.Error(), c.fault) ||
			e.Signed() != c.signed {
			t.Errorf("%s: signed %t, %v, want %q", c.name, e.Signed(), err, c.fault)
		}
	}
}

// The assertion of a passkey covers the document. Only at a login it may cover the ticket in its place.
func TestVerifyPasskey(t *testing.T) {
	party, ok := passkey.NewParty("https://id.example.com", "Castellan", nil)
	if !ok {
		t.Fatal("no party")
	}
	a := passkeytest.New(t, "id.example.com", "https://id.example.com")
	credential, err := party.Register(a.Create(t, party.Creation("Zmlyc3Q", passkey.User{
		Handle: passkeytest.Encode(make([]byte, passkey.HandleBytes)), Name: "a", Shown: "a"}, nil)),
		func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	_, other := devicetest.Signer(t, device.ES256)
	for _, c := range []struct {
		name, action, challenge string
		required                bool
		key                     string
		valid, signed           bool
	}{
		{"of the document", mfa.Withdraw, "", true, "", true, true},
		{"of another document", mfa.Withdraw, "ZGlnZXN0", false, "", false, false},
		{"of a ticket", mfa.Login, "ZGlnZXN0", false, "", true, false},
		{"of a ticket, where an intent is required", mfa.Login, "ZGlnZXN0", true, "", false, false},
		{"of another key", mfa.Login, "", false, other.JWK(), false, false},
		{"without a key", mfa.Login, "", false, "{}", false, false},
	} {
		e := approved(t, c.action)
		if c.required {
			e.Policy.Intent = intent.Required
		}
		if c.challenge == "" {
			c.challenge = e.IntentDigest
		}
		if c.key == "" {
			c.key = credential.Key.JWK()
		}
		e.Proofs[0] = evidence.Proof{Method: "PUSH", DeviceID: "d1", JWK: c.key,
			JWS: passkey.Keep(a.Get(t, party.Request(c.challenge, nil)))}
		if _, err := e.Verify(); (err == nil) != c.valid || e.Signed() != c.signed {
			t.Errorf("%s: signed %t, %v", c.name, e.Signed(), err)
		}
	}
}
