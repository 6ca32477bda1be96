package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	money "castellan/domain/money/policy"
	httppolicy "castellan/http/money/policy"
)

type moneyCmd struct {
	Rule moneyRuleCmd `cmd:"" help:"Manage rules of the money policy: list, add, template, status, remove."`
}

type moneyRuleCmd struct {
	List     moneyRuleListCmd     `cmd:"creates" help:"List the rules of the money policy."`
	Add      moneyRuleAddCmd      `cmd:"" help:"Add the rules of a JSON file, all or none."`
	Template moneyRuleTemplateCmd `cmd:"creates" help:"Add the rules of a template for a law, on trial."`
	Status   moneyRuleStatusCmd   `cmd:"" help:"Set a rule to ACTIVE, TRIAL or INACTIVE, on every node within one second."`
	Remove   moneyRuleRemoveCmd   `cmd:"" help:"Remove a rule, on every node within one second."`
}

type moneyRuleListCmd struct {
	Status string `help:"List only rules with this status." enum:"ACTIVE,TRIAL,INACTIVE," default:""`
	JSON   bool   `name:"json" help:"Print the whole rules, as POST /admin/money/rules takes them."`
}

func (moneyRuleListCmd) Help() string {
	return `Prints label, version, status, kinds and effect of each rule. With --json, the rules can
be edited in a file and added under another label:

  castellan money rule list --json > rules.json`
}

func (c moneyRuleListCmd) Run(e *env, v *app.Deployment) error {
	rules, err := moneyRules(v).Store.Rules(e.ctx)
	if err != nil {
		return err
	}
	rules = slices.DeleteFunc(rules, func(r money.Rule) bool { return c.Status != "" && c.Status != string(r.Status) })
	if c.JSON {
		out := json.NewEncoder(e.out)
		out.SetIndent("", "  ")
		return out.Encode(map[string]any{"rules": httppolicy.Shown(rules)})
	}
	w := e.table()
	for _, r := range rules {
		state := string(r.Status)
		if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(time.Now()) {
			state += " expired"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", r.Label, r.Version, state, joined(r.Kinds), effectSummary(r.Effect))
	}
	return w.Flush()
}

func joined(kinds []money.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ",")
}

// effectSummary returns an effect, on one line.
func effectSummary(e money.Effect) string {
	switch e.Type {
	case money.Approval:
		return fmt.Sprintf("%s %d of %s", e.Type, e.Required, e.Group)
	case money.Wait:
		span, _ := e.For.MarshalText()
		return fmt.Sprintf("%s %s after %s", e.Type, span, e.After)
	}
	return string(e.Type)
}

type moneyRuleAddCmd struct {
	File string `arg:"" help:"JSON file; - reads the standard input."`
}

func (moneyRuleAddCmd) Help() string {
	return `The file has a rule, or {"rules":[…]}, in the form of POST /admin/money/rules:

  {"label": "Large withdrawals", "status": "TRIAL", "kinds": ["WITHDRAWAL"],
   "match": {"amount": {"over": "2000000", "unit": "TRY"}},
   "effect": {"type": "APPROVAL", "group": "treasury", "required": 2}}

Every rule that matches a movement counts, and none permits anything: a new rule never
loosens the policy. Begin with the status TRIAL, which has no effect, and set it to ACTIVE
later. An invalid field is reported by its name, and nothing is stored. docs/money-policy.md
describes the fields.`
}

// maxRuleFile is the largest file of rules, in bytes: that of a request.
const maxRuleFile = 1 << 20

func (c moneyRuleAddCmd) Run(e *env) error {
	body, err := e.read(c.File, maxRuleFile)
	if err != nil {
		return err
	}
	rules, err := httppolicy.ReadRules(body)
	if err != nil {
		return fmt.Errorf("%s: %w; nothing is stored", c.File, everyField(err))
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	return addMoneyRules(e, v, c.File, rules)
}

// addMoneyRules adds rules that come from a file or a template.
func addMoneyRules(e *env, v *app.Deployment, from string, rules []money.Rule) error {
	if err := moneyRules(v).Add(e.ctx, audit.Operator, rules...); err != nil {
		return fmt.Errorf("%s: %w; nothing is stored", from, everyField(err))
	}
	for _, r := range rules {
		fmt.Fprintln(e.out, "added", r.Label)
	}
	return nil
}

type moneyRuleTemplateCmd struct {
	Name string `arg:"" help:"turkiye: the communiqué 29 of MASAK." enum:"turkiye"`
}

func (moneyRuleTemplateCmd) Help() string {
	return `Adds the rules with the status TRIAL, which has no effect. Rehearse each, and set it to ACTIVE
when your lawyers agree. docs/money-policy.md lists what the rules cannot express.

  castellan money rule template turkiye`
}

func (c moneyRuleTemplateCmd) Run(e *env, v *app.Deployment) error {
	return addMoneyRules(e, v, c.Name, money.Templates[c.Name]())
}

// everyField returns an error that names all invalid fields.
func everyField(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Fields) < 2 {
		return err
	}
	var all []string
	for _, p := range f.Fields {
		all = append(all, p.Field+": "+p.Message)
	}
	return errors.New(strings.Join(all, "; "))
}

type moneyRuleLabel struct {
	Label string `arg:"" help:"Label of the rule."`
}

type moneyRuleStatusCmd struct {
	moneyRuleLabel
	To string `arg:"" name:"status" help:"ACTIVE, TRIAL or INACTIVE." enum:"ACTIVE,TRIAL,INACTIVE"`
}

func (moneyRuleStatusCmd) Help() string {
	return `Changes a rule without a second administrator: it is the way out for an installation
with one administrator, and if a wrong rule holds everything. A rule on TRIAL is judged and
shown, and has no effect. The audit trail names the command.

  castellan money rule status "Large withdrawals" TRIAL`
}

func (c moneyRuleStatusCmd) Run(e *env, v *app.Deployment) error {
	err := moneyRules(v).Change(e.ctx, audit.Operator, c.Label, func(r money.Rule) (money.Rule, error) {
		r.Status = money.Status(c.To)
		return r, nil
	})
	return c.report(e, err, strings.ToLower(c.To))
}

type moneyRuleRemoveCmd struct{ moneyRuleLabel }

func (moneyRuleRemoveCmd) Help() string {
	return `Removes a rule without a second administrator; "castellan money rule status" with
INACTIVE keeps it. The versions of a removed rule stay in the database. The audit trail
names the command.`
}

func (c moneyRuleRemoveCmd) Run(e *env, v *app.Deployment) error {
	return c.report(e, moneyRules(v).Remove(e.ctx, audit.Operator, c.Label), "removed")
}

// report prints what was done with the rule.
func (c moneyRuleLabel) report(e *env, err error, done string) error {
	err = explained(err, fault.RecordNotFound, "there is no rule labelled %q", c.Label)
	return e.print(everyField(err), done, c.Label)
}

func moneyRules(v *app.Deployment) *money.Admin { return v.PolicyAdmin(v.Changes(change.Policy)) }
