package mfa_test

import (
	"slices"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
)

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
	if got := mfa.Label("unknown", "en"); got != "" {
		t.Errorf("of an unknown key: %q", got)
	}
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
