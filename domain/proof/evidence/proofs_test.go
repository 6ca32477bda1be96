package evidence_test

import (
	"crypto"
	"crypto/ed25519"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/domain/proof/evidence"
)

// Evidence lists the completed methods in their order, then a denial, and the row of the outcome.
func TestOf(t *testing.T) {
	c := challenge.Challenge{State: challenge.Done, Body: challenge.Body{PolicyID: 7, Required: 2, IntentDigest: "digest",
		Methods: []challenge.Method{{Name: challenge.PUSH, ID: "m1", Order: 2, CompletedAt: 20,
			Proof: &challenge.Proof{DeviceID: "d", JWS: "s", JWK: `{"kty":"k"}`}}, {Name: challenge.SMS},
			{Name: challenge.TOTP, ID: "m3", Order: 1, CompletedAt: 10, Remembered: "r"},
			{Name: challenge.MAIL, ID: "m4", CompletedAt: 30}}}}
	row := audit.Stored{Record: audit.Record{Outcome: audit.Success, Detail: "told"}, Chain: "01.0", Seq: 17,
		Hash: []byte{0xab, 1}}
	want := evidence.Evidence{Version: evidence.Version, Document: "{}", IntentDigest: "digest",
		Proofs: []evidence.Proof{
			{Method: "TOTP", MethodID: "m3", Decision: evidence.Approved, At: 10, Remembered: true},
			{Method: "PUSH", MethodID: "m1", Decision: evidence.Approved, At: 20, DeviceID: "d", JWS: "s",
				JWK: &evidence.JWK{Type: "k"}},
			{Method: "MAIL", MethodID: "m4", Decision: evidence.Denied, At: 30}},
		Policy: evidence.Policy{ID: 7, Required: 2, Methods: []challenge.Name{"PUSH", "SMS", "TOTP", "MAIL"},
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
		challenge.Done: "UNKNOWN", challenge.Denied: "DENIED", challenge.Closed: "CLOSED"} {
		got := evidence.Of(challenge.Challenge{State: state}, nil, nil)
		if got.Outcome != (evidence.Outcome{State: want}) || got.Audit != nil || got.Proofs == nil ||
			got.Policy.Methods == nil {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// approval is evidence with a push of a device and a code. answer signs an answer of the device after a change of its
// claims, and seal signs the evidence by the service.
type approval struct {
	evidence.Evidence
	answer func(edit func(*device.Claims)) string
	seal   func()
}

func approved(t *testing.T, action string) *approval {
	t.Helper()
	d := intent.Document{Version: 1, ChallengeID: "c1", Action: action, UserID: "u1", Language: "en", Title: "t",
		Rows: []intent.Row{}}
	e := &approval{Evidence: evidence.Evidence{Version: evidence.Version, Document: string(d.Canonical()),
		IntentDigest: intent.Digest(d.Canonical()),
		Policy:       evidence.Policy{Required: 2, Methods: []challenge.Name{"PUSH", "SMS", "TOTP"}, Intent: intent.Optional},
		Outcome:      evidence.Outcome{State: "SUCCESS"}}}
	signer, key := devicetest.Signer(t, device.ES256)
	e.answer = func(edit func(*device.Claims)) string {
		t.Helper()
		c := device.Claims{Issuer: "d1", Audience: "https://id.example.com", Method: "POST",
			Target: "/v1/auth/2fa/challenge/complete?x=1", Challenge: "c1", MethodID: "m1", Value: "APPROVED",
			Intent: e.IntentDigest}
		edit(&c)
		return storetest.Value(device.Sign(signer, c))(t)
	}
	service, _ := devicetest.Signer(t, device.EdDSA)
	e.seal = func() { e.sealBy(t, service) }
	e.Proofs = []evidence.Proof{{Method: "PUSH", MethodID: "m1", Decision: evidence.Approved, DeviceID: "d1", At: 1,
		JWS: e.answer(func(*device.Claims) {}), JWK: jwk(key)},
		{Method: "SMS", MethodID: "m2", Decision: evidence.Approved, At: 2}}
	return e
}

func (e *approval) sealBy(t *testing.T, key crypto.Signer) {
	t.Helper()
	var err error
	if e.Evidence, err = e.Sign("castellan", time.UnixMilli(3), "k1", key); err != nil {
		t.Fatal(err)
	}
}

func jwk(key interface{ JWK() string }) *evidence.JWK {
	k := new(evidence.JWK)
	if k.UnmarshalJSON([]byte(key.JWK())) != nil {
		return nil
	}
	return k
}

// claim returns a change of an approval: its device signs other claims.
func claim(edit func(*device.Claims)) func(*approval) {
	return func(e *approval) { e.Proofs[0].JWS = e.answer(edit) }
}

// denies makes the push a denial.
func denies(e *approval) {
	claim(func(c *device.Claims) { c.Value = "DENIED" })(e)
	e.Proofs[0].Decision = evidence.Denied
}

// state returns a change of the outcome.
func state(name string) func(*approval) { return func(e *approval) { e.Outcome.State = name } }

// coded is a change that adds a code which a device signed.
func coded(method challenge.Name, edit func(*device.Claims)) func(*approval) {
	return func(e *approval) {
		e.Proofs[1] = e.Proofs[0]
		e.Proofs[1].Method, e.Proofs[1].MethodID = method, "m2"
		e.Proofs[1].JWS = e.answer(func(c *device.Claims) { c.MethodID, c.Value = "m2", ""; edit(c) })
	}
}

func required(e *approval) { e.Policy.Intent = intent.Required }

// Verify refuses evidence that does not prove its outcome, also if the service signed it, and names the fault.
func TestVerifyNamesTheFault(t *testing.T) {
	_, other := devicetest.Signer(t, device.ES256)
	same := func(*device.Claims) {}
	blind := func(c *device.Claims) { c.Intent = "" }
	for _, c := range []struct {
		name  string
		edits []func(e *approval)
		fault string // "": none
		blind bool
	}{
		{"right", nil, "", false},
		{"another version", []func(e *approval){func(e *approval) { e.Version++ }}, "v: ", false},
		{"no document", []func(e *approval){func(e *approval) { e.Document = "{}" }}, "document: ", false},
		{"another digest", []func(e *approval){func(e *approval) { e.IntentDigest = "x" }}, "intentDigest: ", false},
		{"another key", []func(e *approval){func(e *approval) { e.Proofs[0].JWK = jwk(other) }},
			"proofs[0]: jws: is not a signature", false},
		{"no key", []func(e *approval){func(e *approval) { e.Proofs[0].JWK = nil }}, "proofs[0]: jwk: ", false},
		{"another device", []func(e *approval){func(e *approval) { e.Proofs[0].DeviceID = "d2" }},
			"proofs[0]: jws: is of another device", false},
		{"another challenge", []func(e *approval){claim(func(c *device.Claims) { c.Challenge = "c2" })},
			"proofs[0]: jws: is for another challenge", false},
		{"another intent", []func(e *approval){claim(func(c *device.Claims) { c.Intent = "x" })},
			"proofs[0]: jws: is for another document", false},
		{"no intent", []func(e *approval){claim(blind)}, "", true},
		{"no intent, which is required", []func(e *approval){required, claim(blind)}, "proofs[0]: jws: does not cover",
			true},
		{"a code, where an intent is required", []func(e *approval){required, coded("SMS", blind)}, "", true},
		{"a code of a device", []func(e *approval){coded("SMS", func(c *device.Claims) { c.Value = "123456" })}, "", false},
		{"a denied code", []func(e *approval){coded("SMS", func(c *device.Claims) { c.Value = "DENIED" })},
			"proofs[1]: jws: is for another method", false},
		{"a code that is an approval", []func(e *approval){coded("SMS", func(c *device.Claims) { c.Value = "APPROVED" })},
			"proofs[1]: jws: is for another method", false},
		{"a code of the method of the push", []func(e *approval){coded("SMS", func(c *device.Claims) { c.MethodID = "m1" })},
			"proofs[1]: methodId: ", false},
		{"another method of the push", []func(e *approval){claim(func(c *device.Claims) { c.MethodID = "m3" })},
			"proofs[0]: methodId: ", false},
		{"no method", []func(e *approval){claim(func(c *device.Claims) { c.MethodID = "" })},
			"proofs[0]: jws: does not answer", false},
		{"another endpoint", []func(e *approval){claim(func(c *device.Claims) { c.Target = "/auth/2fa/challenge/renew" })},
			"proofs[0]: jws: does not answer", false},
		{"an endpoint in the query",
			[]func(e *approval){claim(func(c *device.Claims) { c.Target = "/x?/auth/2fa/challenge/complete" })},
			"proofs[0]: jws: does not answer", false},
		{"a read", []func(e *approval){claim(func(c *device.Claims) { c.Method = "GET" })},
			"proofs[0]: jws: does not answer", false},
		{"a matching number", []func(e *approval){claim(func(c *device.Claims) { c.Value = "APPROVED:42" })}, "", false},
		{"no number", []func(e *approval){claim(func(c *device.Claims) { c.Value = "APPROVED:4x" })},
			"proofs[0]: jws: is for another method", false},
		{"no decision", []func(e *approval){claim(func(c *device.Claims) { c.Value = "" })},
			"proofs[0]: jws: is for another method", false},
		{"no signature of a push", []func(e *approval){func(e *approval) { e.Proofs[0].JWS = "" }},
			"proofs[0]: jws: a push without", false},
		{"a remembered push", []func(e *approval){func(e *approval) {
			e.Proofs[0].JWS, e.Proofs[0].Remembered = "", true
		}}, "", false},
		{"a remembered push, where an intent is required", []func(e *approval){required, func(e *approval) {
			e.Proofs[0].JWS, e.Proofs[0].Remembered = "", true
		}}, "proofs[0]: jws: a push without", false},
		{"a method that was not offered", []func(e *approval){func(e *approval) { e.Proofs[1].Method = "MAIL" }},
			"proofs[1]: method: ", false},
		{"a denial that is named an approval",
			[]func(e *approval){denies, func(e *approval) { e.Proofs[0].Decision = evidence.Approved }},
			"proofs[0]: decision: ", false},
		{"an approval that is named a denial",
			[]func(e *approval){state("DENIED"), func(e *approval) { e.Proofs[0].Decision = evidence.Denied }},
			"proofs[0]: decision: ", false},
		{"a code that is named a denial",
			[]func(e *approval){state("DENIED"), func(e *approval) { e.Proofs[1].Decision = evidence.Denied }},
			"proofs[1]: decision: ", false},
		{"one proof twice", []func(e *approval){func(e *approval) { e.Proofs[1] = e.Proofs[0] }},
			"proofs[1]: the method PUSH is listed twice", false},
		{"one method id twice", []func(e *approval){coded("SMS", same), func(e *approval) {
			e.Proofs = append(e.Proofs, e.Proofs[1])
			e.Proofs[2].Method = "TOTP"
		}}, "proofs[2]: the method TOTP is listed twice", false},
		{"a missing method", []func(e *approval){func(e *approval) { e.Proofs = e.Proofs[:1] }},
			"proofs: 1 methods are approved, and SUCCESS needs 2", false},
		{"a failure with a missing method",
			[]func(e *approval){state("FAILURE"), func(e *approval) { e.Proofs = e.Proofs[:1] }},
			"proofs: 1 methods are approved, and FAILURE needs 2", false},
		{"a success that needs nothing", []func(e *approval){func(e *approval) { e.Proofs, e.Policy.Required = nil, 0 }},
			"proofs: 0 methods are approved, and SUCCESS needs 1", false},
		{"a denial", []func(e *approval){denies, state("DENIED")}, "", false},
		{"a denial that is a success", []func(e *approval){denies, func(e *approval) { e.Policy.Required = 1 }},
			"proofs: a signature denies, and the outcome is SUCCESS", false},
		{"a denial that is pending", []func(e *approval){denies, state("PENDING")}, "proofs: a signature denies", false},
		{"a success that is a denial", []func(e *approval){state("DENIED")}, "proofs: the outcome is DENIED", false},
		{"an unknown state", []func(e *approval){state("success")}, "outcome.state: ", false},
		{"closed", []func(e *approval){state("CLOSED"), func(e *approval) { e.Proofs = e.Proofs[:1] }}, "", false},
	} {
		for _, version := range []int{evidence.Version, 1} {
			e := approved(t, mfa.Withdraw)
			for _, edit := range c.edits {
				edit(e)
			}
			unsigned := []string(nil)
			if version == 1 {
				if e.Version != evidence.Version || strings.Contains(c.fault, "decision") || strings.Contains(c.fault, "Id: ") {
					continue // facts that version 1 does not have
				}
				e.Version, unsigned = 1, []string{"the outcome"}
			} else {
				e.seal()
			}
			v, err := e.Verify()
			if (err == nil) != (c.fault == "") || err != nil && !strings.HasPrefix(err.Error(), c.fault) ||
				err == nil && (v.Blind != c.blind || (v.Service == "") != (version == 1)) ||
				err == nil && (unsigned == nil) != (v.Unsigned == nil) {
				t.Errorf("version %d, %s: %+v, %v, want %q", version, c.name, v, err, c.fault)
			}
		}
	}
}

// The statement of the service covers every fact, by a key that is in the evidence.
func TestStatement(t *testing.T) {
	e := approved(t, mfa.Withdraw)
	e.seal()
	v, err := e.Verify()
	if err != nil || v.Unsigned != nil || v.Service != e.Service.JWK.Thumbprint() || v.Service == "" ||
		v.Proofs[0].Endpoint != "POST https://id.example.com/v1/auth/2fa/challenge/complete?x=1" ||
		v.Proofs[0].Thumbprint != e.Proofs[0].JWK.Thumbprint() || v.Proofs[1].Thumbprint != "" {
		t.Fatalf("%+v, %v", v, err)
	}
	_, stranger, err := ed25519.GenerateKey(nil)
	storetest.Must(t, err)
	for name, edit := range map[string]func(){
		"none":               func() { e.Service = nil },
		"another key":        func() { k, _ := device.PublicKey(stranger); e.Service.JWK = jwk(k) },
		"no key":             func() { e.Service.JWK = nil },
		"another issuer":     func() { e.Service.Issuer = "other" },
		"another key id":     func() { e.Service.KeyID = "k2" },
		"another time":       func() { e.Service.At++ },
		"no signature":       func() { e.Service.JWS = e.Service.JWS[:strings.LastIndexByte(e.Service.JWS, '.')+1] },
		"nothing":            func() { e.Service.JWS = "" },
		"another signature":  func() { e.Service.JWS += "\n" },
		"a failure":          func() { e.Outcome.State = "FAILURE" },
		"another policy":     func() { e.Policy.ID++ },
		"another row":        func() { e.Audit = &evidence.Audit{ID: "x"} },
		"another code":       func() { e.Proofs[1].At++ },
		"a remembered code":  func() { e.Proofs[1].Remembered = true },
		"a device of a code": func() { e.Proofs[1].DeviceID = "d1" },
	} {
		e.seal()
		edit()
		if _, err := e.Verify(); err == nil || !strings.HasPrefix(err.Error(), "service: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.sealBy(t, stranger) // a forger's own key is named
	if again, err := e.Verify(); err != nil || again.Service == v.Service {
		t.Errorf("%+v, %v", again, err)
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
	storetest.Must(t, err)
	_, other := devicetest.Signer(t, device.ES256)
	for _, c := range []struct {
		name, action, challenge, method string
		required                        bool
		key                             *evidence.JWK
		valid                           bool
		unsigned                        string // of version 1
	}{
		{"of the document", mfa.Withdraw, "", "PUSH", true, nil, true, "the device of the method PUSH"},
		{"of another document", mfa.Withdraw, "ZGlnZXN0", "PUSH", false, nil, false, ""},
		{"of another method", mfa.Withdraw, "", "TOTP", false, nil, false, ""},
		{"of a ticket", mfa.Login, "ZGlnZXN0", "PUSH", false, nil, true,
			"the challenge and the device of the method PUSH"},
		{"of a ticket, where an intent is required", mfa.Login, "ZGlnZXN0", "PUSH", true, nil, false, ""},
		{"of another key", mfa.Login, "", "PUSH", false, jwk(other), false, ""},
		{"without a key", mfa.Login, "", "PUSH", false, &evidence.JWK{}, false, ""},
	} {
		e := approved(t, c.action)
		if c.required {
			e.Policy.Intent = intent.Required
		}
		blind := c.challenge != ""
		if !blind {
			c.challenge = e.IntentDigest
		}
		if c.key == nil {
			c.key = jwk(credential.Key)
		}
		e.Proofs[0] = evidence.Proof{Method: challenge.Name(c.method), MethodID: "m1", Decision: evidence.Approved,
			DeviceID: "d1",
			JWK:      c.key, JWS: passkey.Keep(a.Get(t, party.Request(c.challenge, nil)))}
		e.seal()
		v, err := e.Verify()
		if (err == nil) != c.valid || c.valid && (v.Blind != blind || v.Proofs[0].Endpoint != "https://id.example.com") {
			t.Errorf("%s: %+v, %v", c.name, v, err)
		}
		e.Version, e.Service = 1, nil
		if v, err = e.Verify(); (err == nil) != c.valid || c.valid &&
			(!slices.Contains(v.Unsigned, c.unsigned) || slices.Contains(v.Unsigned, "the document") != blind) {
			t.Errorf("%s: version 1: %+v, %v", c.name, v, err)
		}
	}
}
