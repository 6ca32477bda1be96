package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
)

// The rules of a new platform and of the templates: label, kind, match and effect.
func TestDefaultRules(t *testing.T) {
	const (
		approval = `|{"type":"APPROVAL","group":"admin","required":1}`
		key      = `"initiator":{"types":["SERVICE"]}`
	)
	sum := func(per, of, over string) string {
		return `"sums":[{"per":"` + per + `","window":"24h","of":"` + of + `","over":` + over + `}]`
	}
	stablecoin := func(code, name, window, over string) string {
		return "MASAK 29: " + code + " " + name + `|WITHDRAWAL|{"assets":[{"currencyCode":"` + code +
			`"}],"sums":[{"per":"ACCOUNT","window":"` + window + `","of":"AMOUNT","over":` + over + `}]}|{"type":"DENY"}`
	}
	defaults := []string{
		`Owner approves|WITHDRAWAL|{"initiator":{"types":["SERVICE","OPERATOR"]}}|{"type":"OWNER"}`,
		`Fresh credentials|WITHDRAWAL|{"account":{"credentialAgeBelow":"24h"}}|{"type":"WAIT","for":"24h",` +
			`"after":"CREDENTIALS"}`,
		`New destination|WITHDRAWAL|{"amount":{"over":100000,"unit":"TRY"},"destination":{"firstUse":true}}|` +
			`{"type":"WAIT","for":"24h","after":"REQUEST"}`,
		`Many accounts, one destination|WITHDRAWAL|{` + sum("DESTINATION", "ACCOUNTS", "3") + `}` + approval,
		`Out of one key|WITHDRAWAL|{` + sum("INITIATOR", "VALUE", "5000000") + `,` + key + `}` + approval,
		`Out of the platform|WITHDRAWAL|{` + sum("PLATFORM", "VALUE", "20000000") + `}` + approval,
		`Large credit|DEPOSIT|{"amount":{"over":2000000,"unit":"TRY"},` + key + `}` + approval,
		`Credits of one key|DEPOSIT|{` + sum("INITIATOR", "VALUE", "20000000") + `,` + key + `}` + approval,
		`Large adjustment|ADJUSTMENT|{"amount":{"over":100000,"unit":"TRY"}}` + approval,
		`Adjustments of one initiator|ADJUSTMENT|{` + sum("INITIATOR", "VALUE", "500000") + `}` + approval,
		`Marked as sent|DECISION|{}` + approval,
		`Fees, treasury, levels|SETTING|{}` + approval,
	}
	turkiye := []string{
		`MASAK 29: 48 h after a credit|WITHDRAWAL|{}|{"type":"WAIT","for":"48h","after":"CREDIT"}`,
		`MASAK 29: 72 h, first withdrawal|WITHDRAWAL|{"account":{"firstWithdrawal":true}}|` +
			`{"type":"WAIT","for":"72h","after":"CREDIT"}`,
		stablecoin("USDC", "a day", "24h", "3000"), stablecoin("USDC", "a month", "744h", "50000"),
		stablecoin("USDT", "a day", "24h", "3000"), stablecoin("USDT", "a month", "744h", "50000"),
	}
	for _, c := range []struct {
		status policy.Status
		rules  []policy.Rule
		want   []string
	}{{policy.Active, policy.Defaults(policy.Active), defaults}, {policy.Trial, policy.Defaults(policy.Trial), defaults},
		{policy.Trial, policy.Templates["turkiye"](), turkiye}} {
		var got []string
		for _, r := range c.rules {
			storetest.Must(t, r.Check())
			match := storetest.Value(json.Marshal(r.Match))(t)
			effect := storetest.Value(json.Marshal(r.Effect))(t)
			got = append(got, fmt.Sprintf("%s|%s|%s|%s", r.Label, r.Kinds[0], match, effect))
			storetest.Same(t, r, policy.Rule{Label: r.Label, Status: c.status, Kinds: r.Kinds[:1], Match: r.Match,
				Effect: r.Effect})
		}
		storetest.Same(t, got, c.want)
		storetest.Must(t, policy.Fits(append(slices.Clone(c.rules), policy.Defaults(policy.Trial)...)))
	}
}

// Default rules on trial neither order movements by a gate nor read a sum. An administrator decides about each of them
// once.
func TestDefaultRulesOnTrial(t *testing.T) {
	for _, k := range []policy.Kind{policy.Withdrawal, policy.Deposit, policy.Adjustment} {
		active, trial := policy.Compile(policy.Defaults(policy.Active)), policy.Compile(policy.Defaults(policy.Trial))
		if needs := trial.Needs(policy.Facts{Kind: k}, false); len(active.Counts(k)) == 0 || len(trial.Counts(k)) > 0 ||
			len(needs) > 0 {
			t.Errorf("%s: counts %v and %v, needs %v", k, active.Counts(k), trial.Counts(k), needs)
		}
	}
	rules := policy.Defaults(policy.Trial)
	for i := range rules {
		rules[i].Version = 1
	}
	rules[0].Version, rules[1].Status = 2, policy.Active
	storetest.Same(t, policy.Undecided(rules[:4]), []string{"New destination", "Many accounts, one destination"})
}

// shelf is a policy.Store in memory of rules that are added.
type shelf struct {
	policy.Store
	rules []policy.Rule
}

func (s *shelf) Rules(context.Context, ...string) ([]policy.Rule, error) {
	return slices.Clone(s.rules), nil
}

func (s *shelf) Last(context.Context, string) (int64, error) { return 0, nil }

func (s *shelf) Put(_ context.Context, r policy.Rule, _ bool, _ time.Time) error {
	s.rules = append(s.rules, r)
	return nil
}

// Rules of one list are judged with each other, and the audit names each of them.
func TestRulesOfOneList(t *testing.T) {
	units, store := &storetest.Units{}, &shelf{}
	a := &policy.Admin{Store: store, Changes: admin.Changes{Commit: units, Now: time.Now},
		Members: func(context.Context, string) (int, error) { return 2, nil }}
	rules := func(labels ...string) (all []policy.Rule) {
		for _, label := range labels {
			all = append(all, ruleOf(t, strings.Replace(large, "Large withdrawals", label, 1)))
		}
		return all
	}
	storetest.Wants(t, a.Add(t.Context(), audit.By{UserID: "op"}, rules("a", "a")...), fault.RecordAlreadyExist)
	store.rules = nil
	storetest.Must(t, a.Add(t.Context(), audit.By{UserID: "op"}, rules("a", "b", "c")...))
	storetest.Same(t, units.Audit(),
		[]string{"op MONEY_RULE_ADD  a version 1 added; b version 1 added; c version 1 added"})
	most := rules("x", "y")
	for i := range policy.MaxSums - 1 {
		sum := most[0].Match.Sums[0]
		sum.Window += policy.Span(time.Duration(i+1) * time.Minute)
		most[i/40].Match.Sums = append(most[i/40].Match.Sums, sum)
	}
	storetest.Must(t, a.Add(t.Context(), audit.By{}, most...))
	store.rules = nil
	most[1].Match.Sums[0].Window++
	storetest.WantsFields(t, a.Add(t.Context(), audit.By{}, most...), "match.sums")
}

// A rehearsal counts what the rule would have done, each movement once. A fact that was not read makes one unknown.
func TestRehearser(t *testing.T) {
	var waits []time.Duration
	for hours := 42; hours <= 48; hours++ {
		waits = append(waits, time.Duration(hours)*time.Hour)
	}
	for _, c := range []struct {
		effect policy.Effect
		want   policy.Rehearsal
	}{
		{policy.Effect{Type: policy.Deny}, policy.Rehearsal{Denied: 7}},
		{policy.Effect{Type: policy.Owner}, policy.Rehearsal{Owner: 7}},
		{policy.Effect{Type: policy.Approval, Group: "admin", Required: 1}, policy.Rehearsal{Held: 7}},
		{policy.Effect{Type: policy.Wait, For: policy.Span(48 * time.Hour), After: policy.AfterRequest},
			policy.Rehearsal{Held: 7, Waits: waits}},
	} {
		h := policy.NewRehearser(policy.Rule{Status: policy.Trial, Kinds: []policy.Kind{policy.Withdrawal}, Effect: c.effect,
			Match: policy.Match{Amount: &policy.Over{Over: policy.Number(1), Unit: policy.InTRY}}, ExpiresAt: now})
		add := func(id string, edit func(*policy.Facts), rehearsed bool) {
			f := policy.Facts{Kind: policy.Withdrawal, At: now, Requested: now, Value: policy.Number(2), Rated: true,
				Account: policy.AccountFacts{ID: "u1"}, Initiator: policy.Initiator{Type: policy.User},
				Read: policy.Wants{Value: true}}
			edit(&f)
			h.Add(id, f, rehearsed, true)
		}
		for i := range 7 {
			add(fmt.Sprint("m", i), func(f *policy.Facts) {
				f.Requested, f.Account.ID = now.Add(-time.Duration(i)*time.Hour), []string{"u1", "u1", "u2"}[i%3]
			}, true)
		}
		add("little", func(f *policy.Facts) { f.Value = policy.Number(1) }, true)
		add("not read", func(f *policy.Facts) { f.Read.Value = false }, true)
		add("another kind", func(f *policy.Facts) { f.Kind = policy.Deposit }, true)
		add("before", func(*policy.Facts) {}, false)
		c.want.Considered, c.want.Unknown, c.want.Value, c.want.Accounts = 9, 1, policy.Number(14).Sum(), 2
		c.want.Examples = []string{"m0", "m1", "m2", "m3", "m4"}
		storetest.Same(t, h.Found(), c.want, c.effect.Type)
	}
}
