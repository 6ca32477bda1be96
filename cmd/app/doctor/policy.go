package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/kit/setup"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/proof"
)

// Keys of findings about the money policy.
const (
	moneyPolicy = "money policy"
	moneyGroups = "money policy groups"
	moneyHolds  = "held withdrawals"
)

// judgeRules names default rules that are still on trial. On a new database they are those of its first start.
func (j *judge) judgeRules(rules []policy.Rule) {
	trial := policy.Undecided(rules)
	j.control(moneyPolicy, len(trial) > 0, "default rules on trial: "+strings.Join(trial, ", "),
		"a leaked key or one operator can move money without the owner or a second person",
		"rehearse each and set it to ACTIVE, or change or delete it (docs/money-policy.md)")
}

// firstRules are the rules that a first start adds.
func firstRules(c config.Config) []policy.Rule {
	status := policy.Active
	if c.Dev {
		status = policy.Trial
	}
	rules := policy.Defaults(status)
	for i := range rules {
		rules[i].Version = 1
	}
	return rules
}

// judgeGroups names the groups of active rules that have too few members, or only one, and the withdrawals whose
// approvals are late.
func (j *judge) judgeGroups(ctx context.Context, db *persistence.DB, rules []policy.Rule) error {
	users := account.NewUsers(db)
	required, by := map[string]int{}, map[string]string{}
	var groups []string
	for _, r := range rules {
		e := r.Effect
		if r.Status != policy.Active || e.Type != policy.Approval || e.Required <= required[e.Group] {
			continue
		}
		if required[e.Group] == 0 {
			groups = append(groups, e.Group)
		}
		required[e.Group], by[e.Group] = e.Required, r.Label
	}
	for _, group := range groups {
		n, err := policy.Members(ctx, users, group, "")
		if err != nil {
			return err
		}
		state := fmt.Sprintf("%s has %d active members; the rule %q requires %d", group, n, by[group], required[group])
		const mend = "give the role to more persons, or change the rule"
		j.add(n < required[group], setup.Finding{Key: moneyGroups, Severity: setup.Fault, State: state,
			Effect: "held movements cannot be approved, and withdrawals are cancelled when their approvals expire", Mend: mend})
		j.feature(moneyGroups, n == 1 && required[group] == 1, state,
			"a movement that this person owns or has asked for cannot be approved", mend)
	}
	governs := func(r policy.Rule) bool {
		return r.Status == policy.Active && r.Effect.Type == policy.Approval &&
			(slices.Contains(r.Kinds, policy.Setting) || slices.Contains(r.Kinds, policy.Decision))
	}
	if slices.ContainsFunc(rules, governs) {
		n, err := policy.Members(ctx, users, user.RoleAdmin, "")
		if err != nil {
			return err
		}
		j.feature(moneyPolicy, n == 1, "one administrator", "rules about settings need no approval",
			"add a second administrator")
	}
	store := money.NewTransactions(db)
	late, err := (&transaction.Judge{Past: store, Users: users, Shared: proof.NewDevices(db).Shared}).
		Overdue(ctx, store, time.Now())
	if err != nil {
		return err
	}
	j.add(len(late) > 0, setup.Finding{Key: moneyHolds, Severity: setup.Fault,
		State:  fmt.Sprintf("%d wait for approvals, such as %s", len(late), strings.Join(late[:min(len(late), 1)], "")),
		Effect: "each is cancelled when its approvals expire", Mend: "resume or cancel them at /admin/withdrawals"})
	return nil
}

// judgeServiceKeys names keys whose theft gives more than their service needs.
func (j *judge) judgeServiceKeys(keys []servicekey.Key) {
	var admins, anywhere []string
	for _, k := range keys {
		if k.Role == user.RoleAdmin {
			admins = append(admins, k.Name)
		}
		if len(k.Networks) == 0 {
			anywhere = append(anywhere, k.Name)
		}
	}
	const key = "service keys"
	j.control(key, len(admins) > 0, "with the role admin: "+strings.Join(admins, ", "),
		"a leaked key may do whatever an administrator may", "give each service a role with only its endpoints")
	j.feature(key, len(anywhere) > 0, "without networks: "+strings.Join(anywhere, ", "),
		"a leaked key is accepted from every address", "set the networks of the key at /admin/service-keys")
}
