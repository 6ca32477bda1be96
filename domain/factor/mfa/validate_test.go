package mfa_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
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

// A change is checked without its policy as far as it can be, and needs one field.
func TestCheckOfPolicyChange(t *testing.T) {
	type change = mfa.PolicyChange
	for i, c := range []struct {
		change change
		fields string
	}{
		{change{Name: new("n")}, ""}, {change{Name: new(" ")}, "name"}, {change{ExpireAt: new(int64(0))}, ""},
		{change{ExpireAt: new(int64(-1))}, "expireAt"}, {change{Required: new(1)}, ""},
		{change{Required: new(0)}, "required"}, {change{Preferred: new(0)}, ""}, {change{Preferred: new(-1)}, "preffered"},
		{change{Methods: &[]mfa.Choice{{Code: "SMS"}}}, ""}, {change{Methods: &[]mfa.Choice{}}, "methods"},
		{change{RememberDays: new(mfa.MaxRememberDays)}, ""},
		{change{RememberDays: new(mfa.MaxRememberDays + 1)}, "remember"},
		{change{RememberDays: new(-1)}, "remember"}, {change{NumberMatching: new(false)}, ""},
		{change{SignIntent: new(false)}, ""}, {change{PhishingResistant: new(false)}, ""},
		{change{PasskeyAlone: new(false)}, ""}, {change{RememberAnyway: new(false)}, ""},
		{change{ExpireAt: new(int64(-1)), Required: new(0)}, "expireAt required"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { storetest.WantsFields(t, c.change.Check(), c.fields) })
	}
	storetest.Wants(t, change{}.Check(), fault.InvalidField)
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
	for field, c := range map[string]struct {
		spoil  func(*mfa.Policy)
		change mfa.PolicyChange
	}{
		"required":  {func(p *mfa.Policy) { p.Required = 3 }, mfa.PolicyChange{Required: new(4)}},
		"preffered": {func(p *mfa.Policy) { p.Preferred = new(3) }, mfa.PolicyChange{Preferred: new(4)}},
		"remember":  {func(p *mfa.Policy) { p.RememberDays = 400 }, mfa.PolicyChange{RememberDays: new(500)}},
		"expireAt":  {func(p *mfa.Policy) { p.ExpireAt = -1 }, mfa.PolicyChange{ExpireAt: new(int64(-2))}},
	} {
		p := policy(1, mfa.Login, 1, "SMS", "MAIL")
		c.spoil(&p)
		_, err = mfa.PolicyChange{Name: new("q")}.Apply(p, catalog())
		refused(t, err, "")
		_, err = c.change.Apply(p, catalog())
		refused(t, err, field)
	}
}

// Two policies are equal if each of their fields is.
func TestEqualPolicies(t *testing.T) {
	p := policy(1, mfa.Login, 1, "SMS")
	for i := range reflect.TypeFor[mfa.Policy]().NumField() {
		q := p
		switch field := reflect.ValueOf(&q).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("other")
		case reflect.Int, reflect.Int64:
			field.SetInt(7)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Slice:
			field.Set(reflect.ValueOf([]mfa.Choice{{Code: "MAIL"}}))
		default:
			field.Set(reflect.ValueOf(new(7)))
		}
		if p.Equal(q) || q.Equal(p) || !q.Equal(q) {
			t.Errorf("equal beside %s", reflect.TypeFor[mfa.Policy]().Field(i).Name)
		}
	}
}

func TestSeeds(t *testing.T) {
	c := mfa.NewCatalog(mfa.SeedMethods(), nil, nil)
	for _, m := range mfa.SeedMethods() {
		storetest.Is(t, m.Check(mfa.Times{}), nil, m.Code)
	}
	actions := mfa.SeedActions()
	storetest.Equal(t, len(actions), 9, "actions")
	for _, a := range actions {
		storetest.Is(t, a.Check(), nil, a.Code)
		if len(a.Title) != 3 || len([]rune(a.Title["tr"])) > 20 {
			t.Errorf("%s: title %v", a.Code, a.Title)
		}
		for _, h := range a.Headers {
			storetest.Equal(t, len(h.Label), 3, a.Code, "header", h.Key, h.Label)
		}
		if a.Code == mfa.DeviceAdd || a.Code == mfa.DeviceRemove {
			t.Errorf("%s has a row", a.Code)
		}
		storetest.Is(t, policy(0, a.Code, 1, "SMS").Check(c), nil, a.Code, "without its row")
	}
}
