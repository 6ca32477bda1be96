package policy

import (
	"slices"
	"time"

	"castellan/domain/account/user"
)

// Defaults returns the rules that a platform begins with, in a status. Their group is the role admin, and their bounds
// fit the limits of the initial levels.
func Defaults(s Status) []Rule {
	yes, day := true, Span(Day)
	approval := Effect{Type: Approval, Group: user.RoleAdmin, Required: 1}
	service := Initiators{Types: []InitiatorType{Service}}
	sum := func(per Per, of Of, over int64) []Sum { return []Sum{{per, day, of, Number(over)}} }
	return inStatus(s,
		Rule{Label: "Owner approves", Kinds: []Kind{Withdrawal}, Effect: Effect{Type: Owner},
			Match: Match{Initiator: Initiators{Types: []InitiatorType{Service, Operator}}}},
		Rule{Label: "Fresh credentials", Kinds: []Kind{Withdrawal},
			Match:  Match{Account: Account{CredentialAgeBelow: day}},
			Effect: Effect{Type: Wait, For: day, After: AfterCredentials}},
		Rule{Label: "New destination", Kinds: []Kind{Withdrawal},
			Match:  Match{Destination: Destination{FirstUse: &yes}, Amount: overTRY(100_000)},
			Effect: Effect{Type: Wait, For: day, After: AfterRequest}},
		Rule{Label: "Many accounts, one destination", Kinds: []Kind{Withdrawal}, Effect: approval,
			Match: Match{Sums: sum(PerDestination, Accounts, 3)}},
		Rule{Label: "Out of one key", Kinds: []Kind{Withdrawal}, Effect: approval,
			Match: Match{Initiator: service, Sums: sum(PerInitiator, Value, 5_000_000)}},
		Rule{Label: "Out of the platform", Kinds: []Kind{Withdrawal}, Effect: approval,
			Match: Match{Sums: sum(PerPlatform, Value, 20_000_000)}},
		Rule{Label: "Large credit", Kinds: []Kind{Deposit}, Effect: approval,
			Match: Match{Initiator: service, Amount: overTRY(2_000_000)}},
		Rule{Label: "Credits of one key", Kinds: []Kind{Deposit}, Effect: approval,
			Match: Match{Initiator: service, Sums: sum(PerInitiator, Value, 20_000_000)}},
		Rule{Label: "Large adjustment", Kinds: []Kind{Adjustment}, Effect: approval,
			Match: Match{Amount: overTRY(100_000)}},
		Rule{Label: "Adjustments of one initiator", Kinds: []Kind{Adjustment}, Effect: approval,
			Match: Match{Sums: sum(PerInitiator, Value, 500_000)}},
		Rule{Label: "Marked as sent", Kinds: []Kind{Decision}, Effect: approval},
		Rule{Label: "Fees, treasury, levels", Kinds: []Kind{Setting}, Effect: approval},
	)
}

// Undecided returns the labels of the rules of Defaults that are on trial and were never changed.
func Undecided(rules []Rule) (labels []string) {
	for _, d := range Defaults(Trial) {
		same := func(r Rule) bool { return r.Label == d.Label && r.Version == 1 && r.Status == Trial }
		if slices.ContainsFunc(rules, same) {
			labels = append(labels, d.Label)
		}
	}
	return labels
}

// Templates are sets of rules for a law, by name. They are on trial.
var Templates = map[string]func() []Rule{"turkiye": turkiye}

// turkiye returns the rules of the communiqué 29 of MASAK. A sum per asset is that of one stablecoin.
func turkiye() []Rule {
	yes := true
	wait := func(h time.Duration) Effect { return Effect{Type: Wait, For: Span(h * time.Hour), After: AfterCredit} }
	rules := []Rule{
		{Label: "MASAK 29: 48 h after a credit", Kinds: []Kind{Withdrawal}, Effect: wait(48)},
		{Label: "MASAK 29: 72 h, first withdrawal", Kinds: []Kind{Withdrawal}, Effect: wait(72),
			Match: Match{Account: Account{FirstWithdrawal: &yes}}}}
	for _, code := range []string{"USDC", "USDT"} {
		limit := func(name string, window time.Duration, over int64) Rule {
			return Rule{Label: "MASAK 29: " + code + " " + name, Kinds: []Kind{Withdrawal}, Effect: Effect{Type: Deny},
				Match: Match{Assets: []Asset{{CurrencyCode: code}},
					Sums: []Sum{{PerAccount, Span(window), Amount, Number(over)}}}}
		}
		rules = append(rules, limit("a day", Day, 3_000), limit("a month", 31*Day, 50_000))
	}
	return inStatus(Trial, rules...)
}

func inStatus(s Status, rules ...Rule) []Rule {
	for i := range rules {
		rules[i].Status = s
	}
	return rules
}

func overTRY(n int64) *Over { return &Over{Number(n), InTRY} }
