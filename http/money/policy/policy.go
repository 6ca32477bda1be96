// Package policy serves the extension with which administrators manage the rules of the money policy (section 7 of its
// design). It reads and writes the wire shape of a rule and leaves every rule about rules to domain/money/policy.
//
// Start reading at Endpoints, then rule.go for the shape.
package policy

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/money/policy"
	"castellan/http/rest"
)

const section = "Extensions: money policy"

const RulesPath = "/admin/money/rules"

// Group serves the section. The list shows the stored rules, not this node's copy.
type Group struct {
	Admin *policy.Admin
	// Rules returns the rules in force on this node.
	Rules func() *policy.Set
	// Stored returns the facts and the totals by which a movement was judged (transaction.Judge).
	Stored func(ctx context.Context, set *policy.Set, movementID string) (policy.Facts, []policy.Total, error)
	Hits   policy.HitStore
	Now    func() time.Time
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get(RulesPath, "List money policy rules", rest.Tenant, g.list, fault.InvalidField).
			Try("status=ACTIVE").
			Doc("listMoneyRules", "The current versions of the stored rules, by label. Hits are shown some "+
				"seconds later."),
		rest.PairIf(rest.NamesBy(rest.Post(RulesPath, "Create money policy rules", rest.Tenant, g.add, fault.InvalidField,
			fault.RecordAlreadyExist, fault.InvalidState).
			Body(rest.LargeBody).MarkSensitive().
			Try(`{"label":"Large withdrawals","status":"ACTIVE","kinds":["WITHDRAWAL"],
				"match":{"amount":{"over":"2000000","unit":"TRY"}},
				"effect":{"type":"APPROVAL","group":"admin","required":1,"expires":"72h"}}`).
			Doc("addMoneyRules", "Adds a rule, or all rules of the list or none. Every rule that matches a movement counts, "+
				"and none permits anything, so a new rule never loosens the policy. It is in force on every node within one "+
				"second. An active rule that denies or holds needs a second person if it had stopped more than 1 % of at "+
				"least 100 movements of its kinds in a day. Then the answer is 202, and the rules wait under "+
				"approvals for another administrator. 409 INVALID_STATE if no other administrator exists. A movement without "+
				"a stored fact that the rule asks for counts as stopped."), g.excepted), g.paired),
		rest.NamesBy(rest.Patch(RulesPath, "Change a money policy rule after an approval", rest.Tenant, g.change,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Body(rest.LargeBody).Pair().MarkSensitive().
			Try(`{"label":"Large withdrawals","status":"INACTIVE"}`, fault.InvalidState).
			Doc("changeMoneyRule", "The label identifies the rule. A field that is sent replaces the whole field; null "+
				"clears expiresAt. A change is a new version. "+always), g.reexcepted),
		rest.Delete(RulesPath, "Delete a money policy rule after an approval", rest.Tenant, g.remove,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Pair().MarkSensitive().
			Try(`{"label":"Large withdrawals"}`, fault.InvalidState).
			Doc("removeMoneyRule", "Its versions are kept. "+always).
			NamesNoUser("the label is that of a rule"),
		rest.Post("/admin/money/explain", "Explain which money policy rules apply to a movement", rest.Tenant, g.explain,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Try(`{"facts":{"kind":"WITHDRAWAL","asset":{"currencyCode":"USDT","network":"TRX"},"amount":"75000",
				"value":"3000000","account":{"id":"${user.id}","level":1,"aml":"notRisky"},"initiator":{"type":"USER"}}}`).
			Doc("explainMoneyPolicy", "Judges the facts of a movement by the rules in force on this node. Nothing changes. "+
				"With facts, each sum counts this movement alone. With movementId, the facts and the sums are those of the "+
				"request or of the report. A fact that no rule asked for then is unknown.").
			NamesNoUser("it changes nothing"),
		rest.Post("/admin/money/rehearse", "Rehearse a money policy rule", rest.Tenant, g.rehearse, fault.InvalidField).
			Try(`{"rule":{"label":"Large withdrawals","status":"TRIAL","kinds":["WITHDRAWAL"],
				"match":{"amount":{"over":"2000000","unit":"TRY"}},
				"effect":{"type":"APPROVAL","group":"admin","required":1,"expires":"72h"}},"days":30}`).
			Doc("rehearseMoneyRule", "Judges the facts of the last days by a rule, and changes nothing. The facts were "+
				"stored with withdrawals, adjustments and reports of deposits. A value that was not stored "+
				"is that of the rates of its hour.").
			NamesNoUser("it changes nothing"),
	).For(rest.Admin).Extended()
}

// always describes an endpoint that always needs a second person.
const always = "The answer is 202, and the change waits under approvals for another administrator, whatever " +
	"mfa.four_eyes says. 409 INVALID_STATE if no other administrator exists: the command castellan money rule on the " +
	"host is the way out."

type filter struct {
	Status *string `json:"status" enum:"ACTIVE,TRIAL,INACTIVE"`
}

func (g Group) list(ctx context.Context, _ rest.Caller, in filter) ([]moneyRule, error) {
	all, err := g.Admin.Store.Rules(ctx)
	if err != nil {
		return nil, err
	}
	hits, err := g.Hits.Hits(ctx, g.Now().Add(time.Hour-policy.Day))
	out := []moneyRule{}
	for _, r := range all {
		if in.Status == nil || *in.Status == string(r.Status) {
			shown, n := show(r), hits[policy.Named{Label: r.Label, Version: r.Version}]
			if r.Counted() {
				shown.Hits = &n
			}
			out = append(out, shown)
		}
	}
	return out, err
}

// maxRules bounds the rules of one request.
const maxRules = 500

type addRequest struct {
	ruleFields
	Rules *[]ruleFields `json:"rules" doc:"rules to add together; replaces the other fields" doc.maxItems:"500"`
}

// rules returns the rules of a request. INVALID_FIELD names the fields of a list as rules[1].match.amount.over.
func (in addRequest) rules() ([]policy.Rule, error) {
	if in.Rules == nil {
		r, err := in.rule()
		return []policy.Rule{r}, err
	}
	if n := len(*in.Rules); n == 0 || n > maxRules {
		return nil, fault.Invalid("rules", "must be from %d to %d", 1, maxRules)
	}
	if in.Label != "" {
		return nil, fault.Invalid("rules", "excludes the fields of a single rule")
	}
	var all []policy.Rule
	var problems fault.Problems
	for i, l := range *in.Rules {
		r, err := l.rule()
		problems.Join(within(fmt.Sprintf("rules[%d].", i), err))
		all = append(all, r)
	}
	return all, fault.All(problems)
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (none rest.None, err error) {
	rules, err := in.rules()
	if err != nil {
		return none, err
	}
	return none, g.Admin.Add(ctx, who.By(), rules...)
}

// paired reports whether new rules need a second person.
func (g Group) paired(ctx context.Context, who rest.Caller, in addRequest) (bool, error) {
	rules, err := in.rules()
	if err != nil { // add reports it
		return false, nil
	}
	return g.Admin.Paired(ctx, who.By(), rules...)
}

// excepted returns the users that new rules except.
func (g Group) excepted(_ context.Context, _ rest.Caller, in addRequest) (rest.Named, error) {
	n := rest.Named{Matter: rest.Standing, Users: in.Except.accounts()}
	if in.Rules != nil {
		for _, l := range *in.Rules {
			n.Users = append(n.Users, l.Except.accounts()...)
		}
	}
	return n, nil
}

type changeRequest struct {
	Label     string                   `json:"label" example:"Large withdrawals" maxLength:"200"`
	Version   *int64                   `json:"version" doc:"409 unless this is the current version" example:"1"`
	Status    *string                  `json:"status" enum:"ACTIVE,TRIAL,INACTIVE"`
	Kinds     *[]string                `json:"kinds" doc.enum:"WITHDRAWAL,DEPOSIT,ADJUSTMENT,DECISION,SETTING"`
	Match     *match                   `json:"match"`
	Except    *except                  `json:"except"`
	Effect    *effect                  `json:"effect"`
	ExpiresAt rest.Nullable[rest.Time] `json:"expiresAt" doc:"null: never"`
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (none rest.None, err error) {
	return none, g.Admin.Change(ctx, who.By(), in.Label, in.apply)
}

// apply returns the rule after the change. INVALID_STATE if the caller saw another version.
func (in changeRequest) apply(r policy.Rule) (policy.Rule, error) {
	if in.Version != nil && *in.Version != r.Version {
		return r, fault.New(fault.InvalidState, "the rule was changed meanwhile")
	}
	var p reader
	if in.Status != nil {
		r.Status = policy.Status(*in.Status)
	}
	if in.Kinds != nil {
		r.Kinds = texts[policy.Kind](*in.Kinds)
	}
	if in.Match != nil {
		r.Match = in.Match.read(&p)
	}
	if in.Except != nil {
		r.Except = in.Except.read()
	}
	if in.Effect != nil {
		r.Effect = in.Effect.read(&p)
	}
	if in.ExpiresAt.Sent {
		r.ExpiresAt = in.ExpiresAt.Value.Time.UTC()
	}
	return r, fault.All(p.Problems)
}

// reexcepted returns the users that a rule excepts before and after a change: the change decides about all of them.
func (g Group) reexcepted(ctx context.Context, _ rest.Caller, in changeRequest) (n rest.Named, err error) {
	n.Matter = rest.Standing
	if in.Except == nil {
		return n, nil
	}
	before, err := g.Admin.Store.Rules(ctx, in.Label)
	for _, r := range before {
		n.Users = append(n.Users, r.Except.Accounts...)
	}
	n.Users = append(n.Users, in.Except.accounts()...)
	return n, err
}

type labelRequest struct {
	Label string `json:"label" maxLength:"200" example:"Large withdrawals"`
}

func (g Group) remove(ctx context.Context, who rest.Caller, in labelRequest) (none rest.None, err error) {
	return none, g.Admin.Remove(ctx, who.By(), in.Label)
}
