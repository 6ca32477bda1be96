package mfa_test

import (
	"fmt"
	"testing"

	"castellan/domain/factor/mfa"
)

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
		if got := fmt.Sprint(ids); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	plan := catalog().PlanOf(general)
	if got := catalog().Stronger(now, &plan, all); len(got) != 1 || got[0].ID != 1 {
		t.Errorf("than a plan: %+v", got)
	}
}
