package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/config"
	"castellan/domain/access/challenge"
	"castellan/domain/access/mfa"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/setup"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/kit"
)

// mfaPolicies is the key of findings about the methods of challenges.
const mfaPolicies = "MFA policies"

// judgeParameters judges the parameters of a snapshot.
func (j *judge) judgeParameters(set *parameter.Set) {
	j.feature(parameter.Treasury.Code, len(parameter.Treasury.In(set)) == 0, "empty",
		"balances cannot be reduced: the treasury has no address",
		`set the parameter TREASURY to {"BTC":{"BTC":"ADDRESS"}}, an address by currency and network`)
	j.feature(parameter.Fee.Code, len(parameter.Fee.In(set)) == 0, "empty", "withdrawals have no fee",
		`set the parameter WITHDRAWAL_FEE to {"BTC":0.0002}, an amount by currency`)
	j.feature(parameter.Minimum.Code, len(parameter.Minimum.In(set)) == 0, "empty", "withdrawals have no minimum amount",
		`set the parameter WITHDRAWAL_MINIMUM to {"BTC":0.001}, an amount by currency`)
	j.feature(parameter.Explorer.Code, len(parameter.Explorer.In(set)) == 0, "empty",
		"withdrawals have no link to their transactions",
		`set the parameter EXPLORER to {"BTC":"https://explorer.example/tx/{txId}"}, a link by network`)
}

// judgePolicies names the actions that no user can complete, because their methods have no channel.
func (j *judge) judgePolicies(c config.Config, methods []mfa.Method, actions []mfa.Action, policies []mfa.Policy) {
	now := time.Now()
	catalog := mfa.NewCatalog(methods, actions, policies)
	offered := func(n challenge.Name) bool {
		switch n {
		case challenge.SMS:
			return c.SMS.Configured() || c.Dev
		case challenge.MAIL:
			return c.Mail.Configured() || c.Dev
		}
		return true
	}
	const mend = "configure the channel, or change the policy"
	var blocked []string
	for _, a := range actions {
		if p := catalog.Plan(now, a.Code, "", ""); p.PolicyID == 0 && len(p.Methods) > 0 {
			if _, err := p.Offer(offered); err != nil {
				blocked = append(blocked, a.Code)
			}
		}
	}
	j.control(mfaPolicies, len(blocked) > 0, "methods without a channel: "+strings.Join(blocked, " "),
		"these actions are refused with MFA_NOT_AVAILABLE for every user", "set mail.host and sms.url")
	for _, p := range policies {
		var without []string
		for _, m := range catalog.PlanOf(p).Methods {
			if !offered(m.Name) && !slices.Contains(without, m.Code) {
				without = append(without, m.Code)
			}
		}
		_, err := catalog.PlanOf(p).Offer(offered)
		state := fmt.Sprintf("policy %d of %s: %s without a channel", p.ID, p.ActionCode, strings.Join(without, " "))
		live := !p.Expired(now.UnixMilli()) && len(without) > 0
		j.control(mfaPolicies, live && err != nil, state, "the action is refused with MFA_NOT_AVAILABLE", mend)
		j.feature(mfaPolicies, live && err == nil, state, "the method is never offered", mend)
	}
}

// judgeStored judges the content of the database. A nil database does not exist yet: a new installation is judged by
// the rows of its first start.
func (j *judge) judgeStored(ctx context.Context, c config.Config, db *persistence.DB) {
	live := parameter.NewCache(nil) // until it is loaded, every parameter has its initial value
	methods, actions := mfa.SeedMethods(), mfa.SeedActions()
	var policies []mfa.Policy
	if db != nil {
		live = parameter.NewCache(kit.NewParameters(db))
		store := access.NewMFA(db)
		err := live.Reload(ctx)
		if err == nil {
			methods, err = store.Methods(ctx)
		}
		if err == nil {
			actions, err = store.Actions(ctx)
		}
		if err == nil {
			policies, err = store.Policies(ctx)
		}
		if err != nil {
			j.add(true, setup.Finding{Key: "database.url", Severity: setup.Fault, State: c.Hide(oneLine(err)),
				Effect: "parameters and MFA policies cannot be checked", Mend: "run castellan migrate, then doctor again"})
		}
	}
	if len(methods) == 0 { // migrated and never started
		methods, actions = mfa.SeedMethods(), mfa.SeedActions()
	}
	j.judgeParameters(live.Set())
	j.judgePolicies(c, methods, actions, policies)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
