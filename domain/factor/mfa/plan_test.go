package mfa_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

var now = time.UnixMilli(1_750_000_000_000)

func policy(id int64, action string, required int, codes ...string) mfa.Policy {
	p := mfa.Policy{ID: id, ActionCode: action, Name: "p", EntityType: mfa.General, Type: mfa.Common,
		Required: required}
	for _, c := range codes {
		code, template, _ := strings.Cut(c, ":")
		p.Methods = append(p.Methods, mfa.Choice{Code: code, Template: template})
	}
	return p
}

func catalog(ps ...mfa.Policy) *mfa.Catalog {
	methods := append(mfa.SeedMethods(), mfa.Method{Code: "PUSH_OTP", ExpireMs: 90_000, RenewStartMs: 5_000},
		mfa.Method{Code: "FAX", ExpireMs: 1})
	return mfa.NewCatalog(methods, mfa.SeedActions(), ps)
}

func codes(ms []mfa.Planned) string {
	var out []string
	for _, m := range ms {
		s := m.Code
		if m.Mandatory {
			s += "!"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name     string
		action   string
		policy   mfa.Policy
		required int
		methods  string // "!" marks a mandatory one
	}{
		{"default", mfa.Login, mfa.Policy{}, 1, "TOTP PUSH SMS MAIL"},
		{"default of an unknown action", "ANYTHING", mfa.Policy{}, 1, "TOTP PUSH SMS MAIL"},
		{"default of the reset", mfa.ResetPassword, mfa.Policy{}, 2, "SMS! MAIL!"},
		{"default of the mail verification", mfa.VerifyEmail, mfa.Policy{}, 1, "MAIL!"},
		{"order of the policy", mfa.Login, policy(1, mfa.Login, 2, "MAIL", "SMS", "TOTP"), 2, "MAIL SMS TOTP"},
		{"PUSH before PUSH_OTP", mfa.Login, policy(1, mfa.Login, 1, "PUSH", "SMS", "PUSH_OTP"), 1, "PUSH SMS"},
		{"PUSH_OTP before PUSH", mfa.Login, policy(1, mfa.Login, 1, "PUSH_OTP", "SMS", "PUSH"), 1, "PUSH_OTP SMS"},
		{"a kind that does not exist", mfa.Login, policy(1, mfa.Login, 1, "FAX", "SMS"), 1, "SMS"},
		{"a method without configuration", mfa.Login, policy(1, mfa.Login, 1, "PIGEON", "SMS"), 1, "SMS"},
		{"reset: required is raised to both", mfa.ResetPassword, policy(1, mfa.ResetPassword, 1, "SMS", "MAIL"), 2,
			"SMS! MAIL!"},
		{"reset: order of the policy", mfa.ResetPassword, policy(1, mfa.ResetPassword, 2, "MAIL", "SMS"), 2,
			"MAIL! SMS!"},
		{"reset: no other method", mfa.ResetPassword, policy(1, mfa.ResetPassword, 2, "TOTP", "MAIL", "PUSH", "SMS"), 2,
			"MAIL! SMS!"},
		{"reset: a missing method joins", mfa.ResetPassword, policy(1, mfa.ResetPassword, 1, "TOTP", "MAIL"), 2,
			"MAIL! SMS!"},
		{"reset: both missing join", mfa.ResetPassword, policy(1, mfa.ResetPassword, 1, "TOTP"), 2, "SMS! MAIL!"},
		{"reset: three required", mfa.ResetPassword, policy(1, mfa.ResetPassword, 3, "TOTP", "PUSH", "MAIL"), 3,
			"TOTP PUSH MAIL! SMS!"},
		{"mail verification: MAIL stays", mfa.VerifyEmail, policy(1, mfa.VerifyEmail, 1, "SMS"), 1, "MAIL!"},
		{"mail verification: two required", mfa.VerifyEmail, policy(1, mfa.VerifyEmail, 2, "SMS", "TOTP"), 2,
			"SMS TOTP MAIL!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ps []mfa.Policy
			if c.policy.ID != 0 {
				ps = append(ps, c.policy)
			}
			p := catalog(ps...).Plan(now, c.action, "u1", "192.0.2.1")
			if p.PolicyID != c.policy.ID || p.Required != c.required || codes(p.Methods) != c.methods ||
				p.EntityType != mfa.General {
				t.Errorf("policy %d (%s), %d of %q; want %d, %d of %q", p.PolicyID, p.EntityType, p.Required,
					codes(p.Methods), c.policy.ID, c.required, c.methods)
			}
		})
	}
}

// A plan contains the configured values, and no renewal for a method that cannot be renewed.
func TestPlanValues(t *testing.T) {
	c := catalog(policy(7, mfa.Login, 1, "SMS:login-sms", "PUSH_OTP", "TOTP"))
	want := []mfa.Planned{
		{Code: "SMS", Name: challenge.SMS, Template: "login-sms", LifetimeMs: 120_000, RenewMs: 60_000},
		{Code: "PUSH_OTP", Name: challenge.PUSH, LifetimeMs: 90_000},
		{Code: "TOTP", Name: challenge.TOTP},
	}
	if got := c.Plan(now, mfa.Login, "", "").Methods; !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestPlanWithoutMethods(t *testing.T) {
	p := mfa.NewCatalog(nil, nil, nil).Plan(now, mfa.ResetPassword, "u1", "")
	if _, err := p.Offer(func(challenge.Name) bool { return true }); fault.CodeOf(err) != fault.MFANotAvailable {
		t.Errorf("an empty configuration allows an action: %v", err)
	}
}

// The user's policy precedes the address's, which precedes the general one; an expired one does not count (D-2FA-12).
func TestChoice(t *testing.T) {
	entity := func(p mfa.Policy, kind mfa.EntityType, id string) mfa.Policy {
		p.EntityType, p.EntityID = kind, id
		return p
	}
	until := func(p mfa.Policy, at int64) mfa.Policy { p.ExpireAt = at; return p }
	general := policy(1, mfa.Login, 1, "SMS")
	address := entity(policy(2, mfa.Login, 1, "MAIL"), mfa.IP, "192.0.2.1")
	user := entity(policy(3, mfa.Login, 1, "TOTP"), mfa.UserID, "u1")
	other := policy(4, mfa.Login, 1, "TOTP")
	other.Type = "SPECIAL"
	odd := entity(policy(5, mfa.Login, 1, "TOTP"), "PLANET", "")
	ms := now.UnixMilli()
	for _, c := range []struct {
		name     string
		policies []mfa.Policy
		user, ip string
		want     int64
		verdicts []mfa.Verdict
	}{
		{"the user first", []mfa.Policy{general, address, user}, "u1", "192.0.2.1", 3,
			[]mfa.Verdict{mfa.Chosen, mfa.Outranked, mfa.Outranked}},
		{"then the address", []mfa.Policy{general, address, user}, "u2", "192.0.2.1", 2,
			[]mfa.Verdict{mfa.OtherEntity, mfa.Chosen, mfa.Outranked}},
		{"an address in its IPv6 form", []mfa.Policy{general, address}, "u2", "::ffff:192.0.2.1", 2,
			[]mfa.Verdict{mfa.Chosen, mfa.Outranked}},
		{"then the general one", []mfa.Policy{general, address, user}, "u2", "192.0.2.2", 1,
			[]mfa.Verdict{mfa.OtherEntity, mfa.OtherEntity, mfa.Chosen}},
		{"no user or address", []mfa.Policy{general, entity(address, mfa.IP, ""), entity(user, mfa.UserID, "")}, "", "", 1,
			[]mfa.Verdict{mfa.OtherEntity, mfa.OtherEntity, mfa.Chosen}},
		{"the last millisecond", []mfa.Policy{until(general, ms+1)}, "u1", "", 1, []mfa.Verdict{mfa.Chosen}},
		{"expired now", []mfa.Policy{until(general, ms)}, "u1", "", 0, []mfa.Verdict{mfa.Expired}},
		{"expired before", []mfa.Policy{until(general, ms-1)}, "u1", "", 0, []mfa.Verdict{mfa.Expired}},
		{"an expired one gives way", []mfa.Policy{general, until(user, ms)}, "u1", "", 1,
			[]mfa.Verdict{mfa.Expired, mfa.Chosen}},
		{"another type", []mfa.Policy{other}, "u1", "", 0, []mfa.Verdict{mfa.UnknownType}},
		{"another kind of entity", []mfa.Policy{odd}, "u1", "", 0, []mfa.Verdict{mfa.OtherEntity}},
		{"none", nil, "u1", "192.0.2.1", 0, []mfa.Verdict{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat := catalog(c.policies...)
			storetest.Equal(t, cat.Plan(now, mfa.Login, c.user, c.ip).PolicyID, c.want, "policy")
			verdicts := []mfa.Verdict{}
			for _, k := range cat.Candidates(now, mfa.Login, c.user, c.ip) {
				verdicts = append(verdicts, k.Verdict)
				if (k.Verdict == mfa.Chosen) != (k.Policy.ID == c.want) {
					t.Errorf("policy %d is %s, the plan takes %d", k.Policy.ID, k.Verdict, c.want)
				}
			}
			if !slices.Equal(verdicts, c.verdicts) {
				t.Errorf("verdicts %v, want %v", verdicts, c.verdicts)
			}
		})
	}
}

func TestOffer(t *testing.T) {
	for _, c := range []struct {
		name  string
		plan  mfa.Policy
		owned []challenge.Name
		want  string // "": MFA_NOT_AVAILABLE
	}{
		{"what is owned, in order", policy(1, mfa.Login, 1, "MAIL", "TOTP", "SMS"),
			[]challenge.Name{challenge.SMS, challenge.MAIL}, "MAIL SMS"},
		{"exactly enough", policy(1, mfa.Login, 2, "MAIL", "TOTP", "SMS"),
			[]challenge.Name{challenge.TOTP, challenge.SMS}, "TOTP SMS"},
		{"one too few", policy(1, mfa.Login, 2, "MAIL", "TOTP", "SMS"), []challenge.Name{challenge.SMS}, ""},
		{"nothing owned", policy(1, mfa.Login, 1, "SMS"), nil, ""},
		{"two codes are one kind", policy(1, mfa.Login, 2, "PUSH", "PUSH_OTP"), []challenge.Name{challenge.PUSH}, ""},
		{"reset without a mail", policy(1, mfa.ResetPassword, 2, "SMS", "MAIL", "TOTP"),
			[]challenge.Name{challenge.SMS, challenge.TOTP}, ""},
		{"reset with three and without a mail", policy(1, mfa.ResetPassword, 3, "SMS", "MAIL", "TOTP", "PUSH"),
			[]challenge.Name{challenge.SMS, challenge.TOTP, challenge.PUSH}, ""},
		{"reset with both", policy(1, mfa.ResetPassword, 2, "TOTP"),
			[]challenge.Name{challenge.SMS, challenge.MAIL, challenge.TOTP}, "SMS! MAIL!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := catalog(c.plan).Plan(now, c.plan.ActionCode, "u1",
				"").Offer(func(n challenge.Name) bool { return slices.Contains(c.owned, n) })
			if c.want == "" && fault.CodeOf(err) != fault.MFANotAvailable || c.want != "" && err != nil ||
				codes(got) != c.want {
				t.Errorf("got %q, %v; want %q", codes(got), err, c.want)
			}
		})
	}
}

// A login by a passkey needs no further method: the passkey is its push. The plan itself is unchanged.
func TestPlanOfLoginByPasskey(t *testing.T) {
	plan := catalog(policy(1, mfa.Login, 2, "SMS", "TOTP")).Plan(now, mfa.Login, "u1", "")
	p := plan.ByPasskey()
	if p.Required != 1 || p.Mandatory != nil || codes(p.Methods) != "PUSH" || p.PolicyID != 1 {
		t.Errorf("%+v", p)
	}
	for name, want := range map[challenge.Name]bool{challenge.PUSH: true, challenge.SMS: false} {
		if p.Lists(name) != want || plan.Lists(name) == want {
			t.Errorf("%s: %t by a passkey, %t else", name, p.Lists(name), plan.Lists(name))
		}
	}
	if plan.Required != 2 || codes(plan.Methods) != "SMS TOTP" {
		t.Errorf("the plan was changed: %+v", plan)
	}
}

// The details of built-in actions have labels in the languages of the service.
func TestLabelsOfDetails(t *testing.T) {
	for _, lang := range []string{"en", "tr", "ar"} {
		if got := mfa.Label(mfa.HeaderSubject, lang); got == "" {
			t.Errorf("no label in %s", lang)
		}
	}
	if mfa.Label(mfa.HeaderSubject, "en") == mfa.Label(mfa.HeaderSubject, "tr") {
		t.Error("one label for two languages")
	}
	storetest.Equal(t, mfa.Label("unknown", "en"), "", "of an unknown key")
	h := mfa.Headers{{Key: "a", Label: mfa.Text{"en": "A"}}, {Key: "b", Label: mfa.Text{"en": "B"}}}
	if h.Label("b", "en") != "B" || h.Label("c", "en") != "" {
		t.Errorf("%q, %q", h.Label("b", "en"), h.Label("c", "en"))
	}
	if !h.Equal(slices.Clone(h)) || h.Equal(h[:1]) || h.Equal(mfa.Headers{h[1], h[0]}) {
		t.Error("headers are equal without their order")
	}
	if !mfa.BuiltIn(mfa.Login) || mfa.BuiltIn("PAYOUT") {
		t.Error("LOGIN alone is built in")
	}
}

// With a passkey, a change of factors needs it beside what the policy requires. The plan itself is unchanged.
func TestPlanOfChangeByPasskey(t *testing.T) {
	for name, c := range map[string]struct {
		policies []mfa.Policy
		required int
		methods  string
	}{
		"the default":     {nil, 1, "PUSH!"},
		"another method":  {[]mfa.Policy{policy(1, mfa.DeviceAdd, 1, "TOTP")}, 2, "TOTP PUSH!"},
		"one of two":      {[]mfa.Policy{policy(1, mfa.DeviceAdd, 1, "SMS", "PUSH")}, 1, "PUSH!"},
		"two of three":    {[]mfa.Policy{policy(1, mfa.DeviceAdd, 2, "SMS", "PUSH", "MAIL")}, 2, "SMS PUSH! MAIL"},
		"two without one": {[]mfa.Policy{policy(1, mfa.DeviceAdd, 2, "SMS", "TOTP")}, 3, "SMS TOTP PUSH!"},
	} {
		in := catalog(c.policies...)
		plan := in.Plan(now, mfa.DeviceAdd, "u1", "")
		before := fmt.Sprintf("%+v", plan)
		got := in.ByPasskeyToo(plan)
		if !got.PhishingResistant || got.Required != c.required || codes(got.Methods) != c.methods ||
			len(got.Mandatory) != 1 || fmt.Sprintf("%+v", in.Plan(now, mfa.DeviceAdd, "u1", "")) != before {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for action, want := range map[string]bool{mfa.DeviceAdd: true, mfa.DeviceRemove: true, mfa.TOTPSetup: true,
		mfa.TOTPDeactivate: true, mfa.Login: false, mfa.Withdraw: false} {
		if mfa.ChangesFactors(action) != want {
			t.Errorf("%s changes factors: %t", action, !want)
		}
	}
}

// A policy that a device completes is stronger than the addition of the device if it needs more methods or a passkey.
func TestStrongerPolicies(t *testing.T) {
	resistant, two, one := policy(1, mfa.Withdraw, 1, "PUSH"), policy(2, mfa.Login, 2, "SMS", "PUSH"),
		policy(3, "EXPORT", 1, "PUSH", "SMS")
	resistant.PhishingResistant = true
	codes, expired, personal := policy(4, "OTHER", 2, "SMS", "MAIL"), two, two
	expired.ID, expired.ExpireAt = 5, 1
	personal.ID, personal.EntityType, personal.EntityID = 6, mfa.UserID, "u1"
	all := []mfa.Policy{resistant, two, one, codes, expired, personal}
	general := policy(7, mfa.DeviceAdd, 2, "SMS", "MAIL")
	weak := policy(8, mfa.DeviceAdd, 1, "SMS")
	weak.EntityType, weak.EntityID = mfa.UserID, "u1"
	for name, c := range map[string]struct {
		add  []mfa.Policy
		want string
	}{
		"the default":            {nil, "[1 2 6]"},
		"two methods":            {[]mfa.Policy{general}, "[1]"},
		"weaker for one account": {[]mfa.Policy{general, weak}, "[1 6]"},
	} {
		in := catalog(append(c.add, all...)...)
		ids := []int64{}
		for _, p := range in.Stronger(now, nil, in.Policies()) {
			ids = append(ids, p.ID)
		}
		storetest.Equal(t, fmt.Sprint(ids), c.want, name)
	}
	plan := catalog().PlanOf(general)
	if got := catalog().Stronger(now, &plan, all); len(got) != 1 || got[0].ID != 1 {
		t.Errorf("than a plan: %+v", got)
	}
}
