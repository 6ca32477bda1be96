package mfa_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
)

func TestMethodCheck(t *testing.T) {
	const day = 86_400_000
	for _, c := range []struct {
		name   string
		method mfa.Method
		field  string
	}{
		{"SMS at the cap", mfa.Method{Code: "SMS", ExpireMs: 600_000}, ""},
		{"SMS above the cap", mfa.Method{Code: "SMS", ExpireMs: 600_001}, "expireMs"},
		{"MAIL at the cap", mfa.Method{Code: "MAIL", ExpireMs: 600_000}, ""},
		{"MAIL above the cap", mfa.Method{Code: "MAIL", ExpireMs: 600_001}, "expireMs"},
		{"PUSH above it", mfa.Method{Code: "PUSH", ExpireMs: 600_001}, ""},
		{"PUSH_OTP above it", mfa.Method{Code: "PUSH_OTP", ExpireMs: 600_001}, ""},
		{"a day", mfa.Method{Code: "PUSH", ExpireMs: day, RenewStartMs: day}, ""},
		{"more than a day", mfa.Method{Code: "PUSH", ExpireMs: day + 1}, "expireMs"},
		{"renewal after more than a day", mfa.Method{Code: "PUSH", RenewStartMs: day + 1}, "renewStartMs"},
		{"the shortest life", mfa.Method{Code: "SMS", ExpireMs: 10_000, RenewStartMs: 10_000}, ""},
		{"seconds for milliseconds", mfa.Method{Code: "SMS", ExpireMs: 120}, "expireMs"},
		{"a life a little too short", mfa.Method{Code: "PUSH", ExpireMs: 9_999}, "expireMs"},
		{"renewal after its end", mfa.Method{Code: "SMS", ExpireMs: 10_000, RenewStartMs: 10_001}, "renewStartMs"},
		{"renewal within the challenge", mfa.Method{Code: "MAIL", RenewStartMs: 600_000}, ""},
		{"renewal after the challenge", mfa.Method{Code: "MAIL", RenewStartMs: 600_001}, "renewStartMs"},
		{"zero for any code", mfa.Method{Code: "SMS"}, ""},
		{"negative life", mfa.Method{Code: "SMS", ExpireMs: -1}, "expireMs"},
		{"negative renewal", mfa.Method{Code: "SMS", RenewStartMs: -1}, "renewStartMs"},
		{"a code of its own", mfa.Method{Code: "FAX_2"}, ""},
		{"longest code", mfa.Method{Code: strings.Repeat("A", 64)}, ""},
		{"longer code", mfa.Method{Code: strings.Repeat("A", 65)}, "methodCode"},
		{"one letter", mfa.Method{Code: "A"}, "methodCode"},
		{"leading digit", mfa.Method{Code: "1A"}, "methodCode"},
		{"leading underscore", mfa.Method{Code: "_A"}, "methodCode"},
		{"small letters", mfa.Method{Code: "sms"}, "methodCode"},
		{"a line break behind it", mfa.Method{Code: "SMS\n"}, "methodCode"},
		{"empty", mfa.Method{}, "methodCode"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.method.Check(mfa.Times{}), c.field) })
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	err := mfa.Method{Code: "x", ExpireMs: -1, RenewStartMs: -1}.Check(mfa.Times{})
	var fields []string
	for _, p := range err.(*fault.Error).Fields {
		fields = append(fields, p.Field)
	}
	if !slices.Equal(fields, []string{"methodCode", "expireMs", "renewStartMs"}) {
		t.Errorf("faulty fields %v", fields)
	}
}

func TestPolicyCheck(t *testing.T) {
	two := policy(0, mfa.Login, 1, "SMS:sms-login", "TOTP")
	number := func(n int) *int { return &n }
	change := func(f func(*mfa.Policy)) mfa.Policy { p := two; f(&p); return p }
	for _, c := range []struct {
		name   string
		policy mfa.Policy
		field  string
	}{
		{"good", two, ""},
		{"of a built-in action without a row", policy(0, mfa.DeviceAdd, 1, "SMS"), ""},
		{"all required", change(func(p *mfa.Policy) { p.Required = 2 }), ""},
		{"required above", change(func(p *mfa.Policy) { p.Required = 3 }), "required"},
		{"required 0", change(func(p *mfa.Policy) { p.Required = 0 }), "required"},
		{"preferred 0", change(func(p *mfa.Policy) { p.Preferred = number(0) }), ""},
		{"preferred all", change(func(p *mfa.Policy) { p.Preferred = number(2) }), ""},
		{"preferred above", change(func(p *mfa.Policy) { p.Preferred = number(3) }), "preffered"},
		{"preferred negative", change(func(p *mfa.Policy) { p.Preferred = number(-1) }), "preffered"},
		{"never expires", change(func(p *mfa.Policy) { p.ExpireAt = 0 }), ""},
		{"expired already", change(func(p *mfa.Policy) { p.ExpireAt = 1 }), ""},
		{"negative end", change(func(p *mfa.Policy) { p.ExpireAt = -1 }), "expireAt"},
		{"end out of reach", change(func(p *mfa.Policy) { p.ExpireAt = 8_640_000_000_000_001 }), "expireAt"},
		{"blank name", change(func(p *mfa.Policy) { p.Name = " \t" }), "name"},
		{"long name", change(func(p *mfa.Policy) { p.Name = strings.Repeat("n", 201) }), "name"},
		{"name of two lines", change(func(p *mfa.Policy) { p.Name = "a\nb" }), "name"},
		{"no methods", policy(0, mfa.Login, 1), "methods"},
		{"unknown method", policy(0, mfa.Login, 1, "SMS", "PIGEON"), "methods"},
		{"malformed method", policy(0, mfa.Login, 1, "sms"), "methods"},
		{"twice the same", policy(0, mfa.Login, 1, "SMS:a", "SMS:b"), "methods"},
		{"PUSH and PUSH_OTP", policy(0, mfa.Login, 1, "PUSH", "PUSH_OTP"), ""},
		{"template for TOTP", policy(0, mfa.Login, 1, "TOTP:x"), "methods"},
		{"template with a line break", policy(0, mfa.Login, 1, "SMS:a\nb"), "methods"},
		{"long template", policy(0, mfa.Login, 1, "SMS:"+strings.Repeat("t", 65)), "methods"},
		{"unknown action", policy(0, "UNKNOWN", 1, "SMS"), "actionCode"},
		{"malformed action", policy(0, "login", 1, "SMS"), "actionCode"},
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

func TestChoiceJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`["SMS"]`, `["SMS"]`},
		{`["SMS","t"]`, `["SMS","t"]`},
		{`["TOTP",null]`, `["TOTP"]`},
		{`["TOTP",""]`, `["TOTP"]`},
		{`["SMS"," "]`, `["SMS"]`},
		{`[]`, ""},
		{`["SMS","t","u"]`, ""},
		{`[null]`, ""},
		{`[5]`, ""},
		{`["SMS",5]`, ""},
		{`"SMS"`, ""},
		{`{"0":"SMS"}`, ""},
		{`null`, ""},
	} {
		var got mfa.Choice
		err := got.UnmarshalJSON([]byte(c.in))
		out, _ := json.Marshal(got)
		if c.want == "" && err == nil || c.want != "" && (err != nil || string(out) != c.want) {
			t.Errorf("%s: %s, %v; want %q", c.in, out, err, c.want)
		}
	}
}

func TestChoicesJSON(t *testing.T) {
	var got mfa.Choices
	if err := json.Unmarshal([]byte(`[["SMS","t"],["TOTP",null]]`), &got); err != nil ||
		!slices.Equal(got, mfa.Choices{{Code: "SMS", Template: "t"}, {Code: "TOTP"}}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{`{}`, `null`, `["SMS"]`, `[null]`, `[["SMS"],[]]`, `"x"`} {
		if err := got.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is read as %v", bad, got)
		}
	}
}

func TestChanges(t *testing.T) {
	method := mfa.Method{Code: "SMS", ExpireMs: 120_000, RenewStartMs: 60_000}
	action := mfa.Action{Code: "LOGIN", Title: mfa.Text{"en": "a"},
		Headers: mfa.Headers{{Key: "k", Label: mfa.Text{"en": "K"}}}}
	common := policy(1, mfa.Login, 1, "SMS", "TOTP")
	text, headers := mfa.Text{"en": "a"}, mfa.Headers{{Key: "k", Label: mfa.Text{"en": "K"}}}
	other, none := mfa.Text{"en": "b"}, mfa.Headers{}
	applyMethod := func(c mfa.MethodChange) (any, error) {
		c.Code = "SMS"
		if err := c.Check(mfa.Times{}); err != nil {
			return nil, err
		}
		return c.Apply(method, mfa.Times{})
	}
	applyAction := func(c mfa.ActionChange) (any, error) {
		c.Code = "LOGIN"
		if err := c.Check(); err != nil {
			return nil, err
		}
		got, err := c.Apply(action)
		b, _ := json.Marshal([]any{got.Title, got.Headers})
		return string(b), err
	}
	applyPolicy := func(p mfa.Policy, c mfa.PolicyChange) (any, error) {
		if err := c.Check(); err != nil {
			return nil, err
		}
		got, err := c.Apply(p, catalog())
		b, _ := json.Marshal([]any{got.Name, got.ExpireAt, got.Required, got.Preference(), got.Methods})
		return string(b), err
	}
	one := policy(1, mfa.Login, 2, "SMS", "TOTP")
	earlier := policy(1, mfa.Login, 1, "SMS", "PIGEON")
	earlier.Name = "p\ufe0f"
	stated := one
	stated.Preferred = new(2)
	for _, c := range []struct {
		name string
		do   func() (any, error)
		want any    // of a change
		why  string // of a refusal, part of it
	}{
		{"method: nothing sent", func() (any, error) { return applyMethod(mfa.MethodChange{}) }, nil, "at least one"},
		{"method: nothing new", func() (any, error) {
			return applyMethod(mfa.MethodChange{ExpireMs: new(int64(120_000)), RenewStartMs: new(int64(60_000))})
		}, nil, "nothing to change"},
		{"method: one of two new", func() (any, error) {
			return applyMethod(mfa.MethodChange{ExpireMs: new(int64(120_000)), RenewStartMs: new(int64(0))})
		}, mfa.Method{Code: "SMS", ExpireMs: 120_000}, ""},
		{"method: above the cap", func() (any, error) {
			return applyMethod(mfa.MethodChange{ExpireMs: new(int64(600_001))})
		}, nil, "expireMs"},
		{"method: shorter than its stored renewal", func() (any, error) {
			return applyMethod(mfa.MethodChange{ExpireMs: new(int64(59_999))})
		}, nil, "renewStartMs"},
		{"method: renewal after its stored life", func() (any, error) {
			return applyMethod(mfa.MethodChange{RenewStartMs: new(int64(120_001))})
		}, nil, "renewStartMs"},
		{"method: both moved together", func() (any, error) {
			return applyMethod(mfa.MethodChange{ExpireMs: new(int64(30_000)), RenewStartMs: new(int64(30_000))})
		}, mfa.Method{Code: "SMS", ExpireMs: 30_000, RenewStartMs: 30_000}, ""},
		{"method: too short", func() (any, error) {
			return applyMethod(mfa.MethodChange{ExpireMs: new(int64(9_999))})
		}, nil, "expireMs"},
		{"method: negative", func() (any, error) { return applyMethod(mfa.MethodChange{RenewStartMs: new(int64(-1))}) },
			nil, "renewStartMs"},
		{"action: nothing sent", func() (any, error) { return applyAction(mfa.ActionChange{}) }, nil, "at least one"},
		{"action: nothing new", func() (any, error) {
			return applyAction(mfa.ActionChange{Title: &text, Headers: &headers})
		}, nil, "nothing to change"},
		{"action: title", func() (any, error) { return applyAction(mfa.ActionChange{Title: &other}) },
			`[{"en":"b"},{"k":{"en":"K"}}]`, ""},
		{"action: headers", func() (any, error) { return applyAction(mfa.ActionChange{Headers: &none}) },
			`[{"en":"a"},{}]`, ""},
		{"action: no text", func() (any, error) { return applyAction(mfa.ActionChange{Title: &mfa.Text{}}) }, nil,
			"title"},
		{"policy: nothing sent", func() (any, error) { return applyPolicy(common, mfa.PolicyChange{}) }, nil,
			"at least one"},
		{"policy: nothing new", func() (any, error) {
			return applyPolicy(common, mfa.PolicyChange{Name: new("p"), Required: new(1), Preferred: new(1),
				ExpireAt: new(int64(0))})
		}, nil, "nothing to change"},
		{"policy: name", func() (any, error) { return applyPolicy(common, mfa.PolicyChange{Name: new("q")}) },
			`["q",0,1,1,[["SMS"],["TOTP"]]]`, ""},
		{"policy: the end of one with an earlier name", func() (any, error) {
			return applyPolicy(earlier, mfa.PolicyChange{Name: &earlier.Name, ExpireAt: new(int64(7))})
		}, `["` + earlier.Name + `",7,1,1,[["SMS"],["PIGEON"]]]`, ""},
		{"policy: another such name", func() (any, error) {
			return applyPolicy(earlier, mfa.PolicyChange{Name: new("q\ufe0f")})
		}, nil, "name"},
		{"policy: another such method", func() (any, error) {
			return applyPolicy(earlier, mfa.PolicyChange{Methods: &[]mfa.Choice{{Code: "PIGEON"}, {Code: "SMS"}}})
		}, nil, "methods"},
		{"policy: blank name", func() (any, error) { return applyPolicy(common, mfa.PolicyChange{Name: new(" ")}) },
			nil, "name"},
		{"policy: required follows the stored methods",
			func() (any, error) { return applyPolicy(common, mfa.PolicyChange{Required: new(3)}) }, nil, "required"},
		{"policy: fewer methods than required", func() (any, error) {
			return applyPolicy(one, mfa.PolicyChange{Methods: &[]mfa.Choice{{Code: "SMS"}}})
		}, nil, "required"},
		{"policy: fewer methods and required", func() (any, error) {
			return applyPolicy(one, mfa.PolicyChange{Methods: &[]mfa.Choice{{Code: "SMS"}}, Required: new(1)})
		}, `["p",0,1,1,[["SMS"]]]`, ""},
		{"policy: fewer methods than a stated preference", func() (any, error) {
			return applyPolicy(stated, mfa.PolicyChange{Methods: &[]mfa.Choice{{Code: "SMS"}}, Required: new(1)})
		}, nil, "preffered"},
		{"policy: unknown method", func() (any, error) {
			return applyPolicy(common, mfa.PolicyChange{Methods: &[]mfa.Choice{{Code: "PIGEON"}}})
		}, nil, "methods"},
		{"policy: required 0", func() (any, error) { return applyPolicy(common, mfa.PolicyChange{Required: new(0)}) },
			nil, "required"},
		{"policy: preferred negative", func() (any, error) {
			return applyPolicy(common, mfa.PolicyChange{Preferred: new(-1)})
		}, nil, "preffered"},
		{"policy: negative end", func() (any, error) {
			return applyPolicy(common, mfa.PolicyChange{ExpireAt: new(int64(-1))})
		}, nil, "expireAt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.do()
			switch {
			case c.why == "" && (err != nil || got != c.want):
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			case c.why != "" && (fault.CodeOf(err) != fault.InvalidField || !strings.Contains(err.Error(), c.why)):
				t.Errorf("got %v, want INVALID_FIELD with %q", err, c.why)
			}
		})
	}
}

func TestCodesOfChanges(t *testing.T) {
	refused(t, mfa.MethodChange{Code: "sms", ExpireMs: new(int64(10_000))}.Check(mfa.Times{}), "methodCode")
	refused(t, mfa.ActionChange{Code: "", Title: &mfa.Text{"en": "x"}}.Check(), "actionCode")
	refused(t, mfa.CheckCode("methodCode", ""), "methodCode")
	refused(t, mfa.CheckCode("methodCode", "SMS"), "")
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
