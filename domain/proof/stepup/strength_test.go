package stepup

import (
	"strings"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// changing returns ports whose policy of DEVICE_ADD is one method, and the start of it by alice with a passkey.
func changing(t *testing.T, required int, methods ...string) (*ports, challenge.StartRequest) {
	t.Helper()
	p := newPorts(t, required, methods...)
	for _, code := range []string{mfa.DeviceAdd, mfa.DeviceRemove, mfa.TOTPSetup, mfa.TOTPDeactivate, "PAYOUT"} {
		p.Starter.Actions[code] = challenge.Action{Code: code, Flow: challenge.FlowSession}
	}
	r := login(alice())
	r.Action, r.Account.Passkeys = mfa.DeviceAdd, true
	return p, r
}

// The factors of an account with a passkey are changed with one, whatever the policy; a recovery code replaces it. No
// other account and no other action needs it.
func TestChangeOfFactorsNeedsPasskey(t *testing.T) {
	settles := func(p *ports, _ *challenge.StartRequest) { p.lacks = passkey.Changing }
	for name, c := range map[string]struct {
		edit      func(*ports, *challenge.StartRequest)
		resistant bool
		refused   string
	}{
		"a device":           {func(*ports, *challenge.StartRequest) {}, true, ""},
		"a removal":          {func(_ *ports, r *challenge.StartRequest) { r.Action = mfa.DeviceRemove }, true, ""},
		"an authenticator":   {func(_ *ports, r *challenge.StartRequest) { r.Action = mfa.TOTPSetup }, true, ""},
		"its end":            {func(_ *ports, r *challenge.StartRequest) { r.Action = mfa.TOTPDeactivate }, true, ""},
		"another action":     {func(_ *ports, r *challenge.StartRequest) { r.Action = "PAYOUT" }, false, ""},
		"without a passkey":  {func(_ *ports, r *challenge.StartRequest) { r.Account.Passkeys = false }, false, ""},
		"by a recovery code": {func(_ *ports, r *challenge.StartRequest) { r.Recovered = true }, false, ""},
		"by another service": {func(_ *ports, r *challenge.StartRequest) { r.Service = "shop" }, false, ""},
		"a key that settles": {settles, false, ""},
		"nothing else": {func(p *ports, r *challenge.StartRequest) {
			settles(p, r)
			p.only, r.Account.Phone, r.Account.Mail, r.Account.TOTP = true, "", "", false
		}, false, "before 2027"},
	} {
		p, r := changing(t, 1, "SMS", "PUSH")
		p.Starter.Actions[challenge.ServiceAction] = challenge.Action{Code: challenge.ServiceAction,
			Flow: challenge.FlowSession}
		c.edit(p, &r)
		got, err := p.Start(t.Context(), r)
		if c.refused != "" {
			if fault.CodeOf(err) != fault.MFANotAvailable || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		made := got.Challenge
		if err != nil || made.Resistant != c.resistant || made.Recovered != r.Recovered ||
			c.resistant != (len(made.Methods) == 1 && made.Methods[0].Name == challenge.PUSH) ||
			made.Settling != (p.lacks > 0) || made.Settling && made.Passkeys {
			t.Errorf("%s: %+v, %v", name, made.Methods, err)
		}
	}
}

// A challenge that must resist phishing is not approved by a passkey that does not count yet; any other is.
func TestPasskeyThatSettles(t *testing.T) {
	for name, c := range map[string]struct {
		row  challenge.Challenge
		want fault.Code
	}{
		"any": {challenge.Challenge{Action: "LOGIN"}, ""},
		"none settled": {challenge.Challenge{Action: mfa.TOTPSetup, Body: challenge.Body{Settling: true}},
			fault.DeviceSignatureInvalid},
		"resistant": {challenge.Challenge{Action: "LOGIN", Body: challenge.Body{Resistant: true}},
			fault.DeviceSignatureInvalid},
		"changing": {challenge.Challenge{Action: mfa.DeviceAdd, Body: challenge.Body{Resistant: true}}, ""},
		"of a service": {challenge.Challenge{Action: mfa.DeviceAdd, Body: challenge.Body{Resistant: true, Service: "shop"}},
			fault.DeviceSignatureInvalid},
	} {
		p := newPorts(t, 1, "PUSH")
		p.asserted = passkeyOfAlice
		p.asserted.Counts = false
		p.rows = map[string]challenge.Challenge{"c1": c.row}
		p.needs = map[passkey.Need]bool{passkey.Any: true, passkey.Changing: !c.row.Settling}
		a := Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.PUSH, Value: "APPROVED",
			Assertion: []byte("assertion"), By: audit.By{}}
		if _, err := p.Complete(t.Context(), a); fault.CodeOf(err) != c.want || (len(p.answers) == 1) != (c.want == "") {
			t.Errorf("%s: %v, %d answers", name, err, len(p.answers))
		}
	}
}

// A login by a passkey that does not count yet is complete alone only if the policy does not ask for resistance.
func TestLoginByPasskeyThatSettles(t *testing.T) {
	for name, c := range map[string]struct {
		resistant, counts, alone bool
	}{"settled": {true, true, true}, "settles": {true, false, false}, "without resistance": {false, false, true}} {
		policy := mfa.Policy{ActionCode: "LOGIN", EntityType: mfa.General, Type: mfa.Common, Required: 1,
			Methods: []mfa.Choice{{Code: "PUSH"}}, PasskeyAlone: true, PhishingResistant: c.resistant}
		p := portsOf(t, policy)
		r := login(alice())
		r.Account.Passkeys, r.Entry, r.Counts = true, challenge.Key, c.counts
		got, err := p.Start(t.Context(), r)
		if !c.alone {
			storetest.Wants(t, err, fault.MFANotAvailable)
		} else if err != nil || got.Challenge.Entry != challenge.Alone {
			t.Errorf("%s: %+v, %v", name, got.Challenge, err)
		}
	}
}
