package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
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
	List     moneyRuleListCmd     `cmd:"" help:"List the rules of the money policy."`
	Add      moneyRuleAddCmd      `cmd:"" help:"Add the rules of a JSON file, all or none."`
	Template moneyRuleTemplateCmd `cmd:"" help:"Add the rules of a template for a law, on trial."`
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

func (c moneyRuleListCmd) Run(e *env) error {
	return withMoneyRules(e, func(a *money.Admin) error {
		all, err := a.Store.Rules(e.ctx)
		if err != nil {
			return err
		}
		rules := []money.Rule{}
		for _, r := range all {
			if c.Status == "" || c.Status == string(r.Status) {
				rules = append(rules, r)
			}
		}
		if c.JSON {
			out := json.NewEncoder(e.out)
			out.SetIndent("", "  ")
			return out.Encode(map[string]any{"rules": httppolicy.Shown(rules)})
		}
		w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
		for _, r := range rules {
			state := string(r.Status)
			if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(time.Now()) {
				state += " expired"
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", r.Label, r.Version, state, joined(r.Kinds), effectSummary(r.Effect))
		}
		return w.Flush()
	})
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
	in := e.in
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	body, err := io.ReadAll(io.LimitReader(in, maxRuleFile+1))
	if err != nil {
		return err
	}
	if len(body) > maxRuleFile {
		return fmt.Errorf("%s is larger than 1 MiB", c.File)
	}
	rules, err := httppolicy.ReadRules(body)
	if err != nil {
		return fmt.Errorf("%s: %w; nothing is stored", c.File, everyField(err))
	}
	return addMoneyRules(e, c.File, rules)
}

// addMoneyRules adds rules that come from a file or a template.
func addMoneyRules(e *env, from string, rules []money.Rule) error {
	return withMoneyRules(e, func(a *money.Admin) error {
		err := a.Add(e.ctx, audit.Operator, rules...)
		if err != nil {
			return fmt.Errorf("%s: %w; nothing is stored", from, everyField(err))
		}
		for _, r := range rules {
			fmt.Fprintln(e.out, "added", r.Label)
		}
		return nil
	})
}

type moneyRuleTemplateCmd struct {
	Name string `arg:"" help:"turkiye: the communiqué 29 of MASAK." enum:"turkiye"`
}

func (moneyRuleTemplateCmd) Help() string {
	return `Adds the rules with the status TRIAL, which has no effect. Rehearse each, and set it to ACTIVE
when your lawyers agree. docs/money-policy.md lists what the rules cannot express.

  castellan money rule template turkiye`
}

func (c moneyRuleTemplateCmd) Run(e *env) error {
	return addMoneyRules(e, c.Name, money.Templates[c.Name]())
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

func (c moneyRuleStatusCmd) Run(e *env) error {
	return withMoneyRules(e, func(a *money.Admin) error {
		err := a.Change(e.ctx, audit.Operator, c.Label, func(r money.Rule) (money.Rule, error) {
			r.Status = money.Status(c.To)
			return r, nil
		})
		return c.report(e, err, strings.ToLower(c.To))
	})
}

type moneyRuleRemoveCmd struct{ moneyRuleLabel }

func (moneyRuleRemoveCmd) Help() string {
	return `Removes a rule without a second administrator; "castellan money rule status" with
INACTIVE keeps it. The versions of a removed rule stay in the database. The audit trail
names the command.`
}

func (c moneyRuleRemoveCmd) Run(e *env) error {
	return withMoneyRules(e, func(a *money.Admin) error {
		return c.report(e, a.Remove(e.ctx, audit.Operator, c.Label), "removed")
	})
}

// report prints what was done with the rule.
func (c moneyRuleLabel) report(e *env, err error, done string) error {
	if fault.CodeOf(err) == fault.RecordNotFound {
		return fmt.Errorf("there is no rule labelled %q", c.Label)
	}
	return e.print(everyField(err), done, c.Label)
}

func withMoneyRules(e *env, do func(*money.Admin) error) error {
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	return do(v.PolicyAdmin(v.Changes(change.Policy)))
}
