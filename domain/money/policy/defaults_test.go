package policy_test

import (
	"slices"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
)

// The rules of a new platform and of the templates are valid together. On trial none orders movements by a gate or
// reads a sum; an administrator decides about each of them once.
func TestDefaultRules(t *testing.T) {
	for name, rules := range map[string][]policy.Rule{"active": policy.Defaults(policy.Active),
		"trial": policy.Defaults(policy.Trial), "turkiye": policy.Templates["turkiye"]()} {
		all := append(slices.Clone(rules), policy.Defaults(policy.Trial)...)
		storetest.Must(t, policy.Fits(all))
		for _, r := range rules {
			storetest.Must(t, r.Check())
		}
		set := policy.Compile(rules)
		for _, k := range []policy.Kind{policy.Withdrawal, policy.Deposit, policy.Adjustment} {
			needed := set.Needs(policy.Facts{Kind: k}, false)
			if active := name == "active"; active != (len(set.Counts(k)) > 0) || !active && len(needed) > 0 {
				t.Errorf("%s, %s: counts %v, needs %v", name, k, set.Counts(k), needed)
			}
		}
	}
	rules := policy.Defaults(policy.Trial)
	for i := range rules {
		rules[i].Version = 1
	}
	rules[0].Version, rules[1].Status = 2, policy.Active
	if got, want := len(policy.Undecided(rules[:4])), 2; got != want {
		t.Errorf("%d are undecided, want %d", got, want)
	}
}
