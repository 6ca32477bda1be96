package mfa_test

import (
	"strings"
	"testing"

	"castellan/domain/factor/mfa"
)

func TestMethodCheck(t *testing.T) {
	const day = 86_400_000
	for _, c := range []struct {
		name   string
		method mfa.Method
		field  string
	}{
		{"MAIL at the cap", mfa.Method{Code: "MAIL", ExpireMs: 600_000}, ""},
		{"PUSH_OTP above it", mfa.Method{Code: "PUSH_OTP", ExpireMs: 600_001}, ""},
		{"a day", mfa.Method{Code: "PUSH", ExpireMs: day, RenewStartMs: day}, ""},
		{"more than a day", mfa.Method{Code: "PUSH", ExpireMs: day + 1}, "expireMs"},
		{"renewal after more than a day", mfa.Method{Code: "PUSH", RenewStartMs: day + 1}, "renewStartMs"},
		{"the shortest life", mfa.Method{Code: "SMS", ExpireMs: 10_000, RenewStartMs: 10_000}, ""},
		{"a life a little too short", mfa.Method{Code: "PUSH", ExpireMs: 9_999}, "expireMs"},
		{"renewal after its end", mfa.Method{Code: "SMS", ExpireMs: 10_000, RenewStartMs: 10_001}, "renewStartMs"},
		{"renewal within the challenge", mfa.Method{Code: "MAIL", RenewStartMs: 600_000}, ""},
		{"a code of its own", mfa.Method{Code: "FAX_2"}, ""},
		{"longest code", mfa.Method{Code: strings.Repeat("A", 64)}, ""},
		{"longer code", mfa.Method{Code: strings.Repeat("A", 65)}, "methodCode"},
		{"one letter", mfa.Method{Code: "A"}, "methodCode"},
		{"leading digit", mfa.Method{Code: "1A"}, "methodCode"},
		{"leading underscore", mfa.Method{Code: "_A"}, "methodCode"},
		{"a line break behind it", mfa.Method{Code: "SMS\n"}, "methodCode"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.method.Check(mfa.Times{}), c.field) })
	}
}

func TestPolicyCheck(t *testing.T) {
	two := policy(0, mfa.Login, 1, "SMS:sms-login", "TOTP")
	change := func(f func(*mfa.Policy)) mfa.Policy { p := two; f(&p); return p }
	for _, c := range []struct {
		name   string
		policy mfa.Policy
		field  string
	}{
		{"good", two, ""},
		{"all required", change(func(p *mfa.Policy) { p.Required = 2 }), ""},
		{"long name", change(func(p *mfa.Policy) { p.Name = strings.Repeat("n", 201) }), "name"},
		{"name of two lines", change(func(p *mfa.Policy) { p.Name = "a\nb" }), "name"},
		{"PUSH and PUSH_OTP", policy(0, mfa.Login, 1, "PUSH", "PUSH_OTP"), ""},
		{"template with a line break", policy(0, mfa.Login, 1, "SMS:a\nb"), "methods"},
		{"long template", policy(0, mfa.Login, 1, "SMS:"+strings.Repeat("t", 65)), "methods"},
		{"a passkey alone for a device", change(func(p *mfa.Policy) { p.ActionCode, p.PasskeyAlone = mfa.DeviceAdd, true }),
			"passkeyAlone"},
		{"a passkey alone with an intent", change(func(p *mfa.Policy) { p.PasskeyAlone, p.SignIntent = true, true }),
			"passkeyAlone"},
		{"a recovery by a passkey", change(func(p *mfa.Policy) {
			p.ActionCode, p.PhishingResistant = mfa.ResetPassword, true
		}), "phishingResistant"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.policy.Check(catalog()), c.field) })
	}
}

// A policy of an earlier version that breaks a newer rule can be changed elsewhere, and keeps no value that changes.
func TestChangeOfEarlierPolicy(t *testing.T) {
	earlier := policy(1, mfa.Login, 1, "SMS", "PIGEON")
	earlier.Name = "p\ufe0f"
	got, err := mfa.PolicyChange{Name: &earlier.Name, ExpireAt: new(int64(7))}.Apply(earlier, catalog())
	if err != nil || got.ExpireAt != 7 || got.Name != earlier.Name || len(got.Methods) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = mfa.PolicyChange{Name: new("q\ufe0f")}.Apply(earlier, catalog())
	refused(t, err, "name")
	_, err = mfa.PolicyChange{Methods: &[]mfa.Choice{{Code: "PIGEON"}, {Code: "SMS"}}}.Apply(earlier, catalog())
	refused(t, err, "methods")
}

func TestSeeds(t *testing.T) {
	c := mfa.NewCatalog(mfa.SeedMethods(), nil, nil)
	for _, m := range mfa.SeedMethods() {
		if err := m.Check(mfa.Times{}); err != nil {
			t.Errorf("%s: %v", m.Code, err)
		}
	}
	actions := mfa.SeedActions()
	if len(actions) != 9 {
		t.Errorf("%d actions", len(actions))
	}
	for _, a := range actions {
		if err := a.Check(); err != nil {
			t.Errorf("%s: %v", a.Code, err)
		}
		if len(a.Title) != 3 || len([]rune(a.Title["tr"])) > 20 {
			t.Errorf("%s: title %v", a.Code, a.Title)
		}
		for _, h := range a.Headers {
			if len(h.Label) != 3 {
				t.Errorf("%s: header %s %v", a.Code, h.Key, h.Label)
			}
		}
		if a.Code == mfa.DeviceAdd || a.Code == mfa.DeviceRemove {
			t.Errorf("%s has a row", a.Code)
		}
		if err := policy(0, a.Code, 1, "SMS").Check(c); err != nil {
			t.Errorf("%s is not known without its row: %v", a.Code, err)
		}
	}
}
