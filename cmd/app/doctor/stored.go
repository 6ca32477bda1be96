package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/setup"
	"castellan/domain/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/permit"
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
		return !n.Sent() || adapters.Offers(c, n.Channel())
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
	for _, p := range catalog.Stronger(now, nil, policies) {
		j.control(mfaPolicies, true, fmt.Sprintf("policy %d of %s: stronger than DEVICE_ADD", p.ID, p.ActionCode),
			"an account without a device adds one by fewer factors and then completes the action with it; a new passkey "+
				"counts after webauthn.settle only", "require as much in a policy of DEVICE_ADD")
	}
}

// judgeStored judges the content of the database. A nil database does not exist yet: a new installation is judged by
// the rows of its first start.
func (j *judge) judgeStored(ctx context.Context, c config.Config, db *persistence.DB) {
	live := parameter.NewCache(nil) // until it is loaded, every parameter has its initial value
	methods, actions := mfa.SeedMethods(), mfa.SeedActions()
	var policies []mfa.Policy
	var routes []gateway.Route
	var spelled []gateway.Spelled
	var keys []servicekey.Key
	rules := firstRules(c)
	var expiring int64  // imported hashes
	var identities bool // an account has stated an identity number
	if db != nil {
		live = parameter.NewCache(kit.NewParameters(db))
		store, gateways, day := factor.NewMFA(db), gate.NewGateways(db), time.Now().Add(-24*time.Hour).Truncate(time.Hour)
		var err error
		for _, read := range []func(){
			func() { err = live.Reload(ctx) },
			func() { methods, err = store.Methods(ctx) },
			func() { actions, err = store.Actions(ctx) },
			func() { policies, err = store.Policies(ctx) },
			func() { routes, err = gateways.Routes(ctx) },
			func() { keys, err = permit.NewServiceKeys(db).List(ctx) },
			func() { rules, err = money.NewRules(db).Rules(ctx) },
			func() { err = j.judgeGroups(ctx, db, rules) },
			func() { spelled, err = gateways.Spelled(ctx, day) },
			func() { identities, err = people.NewIdentities(db).Any(ctx) },
			func() { expiring, err = expiringHashes(ctx, account.NewHashKinds(db), c.Password.ImportKeep) },
		} {
			if read(); err != nil {
				break
			}
		}
		if err != nil {
			j.add(true, setup.Finding{Key: "database.url", Severity: setup.Fault, State: c.Hide(oneLine(err)),
				Effect: "parameters and MFA policies cannot be checked", Mend: "run castellan migrate, then doctor again"})
		}
	}
	if len(methods) == 0 { // migrated and never started
		methods, actions = mfa.SeedMethods(), mfa.SeedActions()
	}
	if db != nil {
		j.judgeProcesses(ctx, db)
	}
	j.judgeParameters(live.Set())
	j.judgeRules(rules)
	j.judgeServiceKeys(keys)
	j.judgePolicies(c, methods, actions, policies)
	j.judgeSpelled(routes, spelled)
	j.judgeServiceActions(c, actions, keys, routes)
	j.judgeProofs(c, routes)
	j.control(identityURL, identities && c.KYC.IdentityURL == "", "empty, and accounts have identity numbers",
		"only the check digits of identity numbers are checked", registerMend)
	j.feature("password.import_keep", expiring > 0, fmt.Sprintf("%d imported passwords expire within 30 days", expiring),
		"these users can log in only after a reset of the password", "ask them to log in, or raise password.import_keep")
}

// expiryWarning is how long before its end an imported password is reported.
const expiryWarning = 30 * 24 * time.Hour

// expiringHashes counts the imported hashes that expire soon.
func expiringHashes(ctx context.Context, store password.KindStore, keep time.Duration) (int64, error) {
	census, err := store.Census(ctx)
	if err != nil {
		return 0, err
	}
	before := census.Deadline(time.Now().Add(expiryWarning), keep)
	if before.IsZero() {
		return 0, nil
	}
	return store.Imported(ctx, before)
}

// judgeProofs names routes without a host where each request needs a proof, which names a known address.
func (j *judge) judgeProofs(c config.Config, routes []gateway.Route) {
	if !c.Sessions.Requests() || c.Source("http.public_url") == config.FromDefault {
		return
	}
	for _, r := range routes {
		j.feature("sessions.bind", r.Status == gateway.Active && r.Mode != gateway.Refuse && r.Host == "",
			fmt.Sprintf("requests, and the guard route %s has no host", r.Method+" "+r.Path),
			"a proof for a host that is not in http.public_url, http.cors_origins or another route is refused",
			"name the host in the route, or list the origin in http.cors_origins")
	}
}

// judgeSpelled names the routes whose traffic of the last day is refused, or would be after their trial, because some
// servers take it for that of the route.
func (j *judge) judgeSpelled(routes []gateway.Route, spelled []gateway.Spelled) {
	for _, r := range routes {
		total := map[string]gateway.Spelled{}
		for _, s := range spelled {
			if s.RouteID == r.ID {
				sum := total[s.Reader]
				sum.Sent, sum.Count = s.Sent, sum.Count+s.Count
				total[s.Reader] = sum
			}
		}
		const key, mend = "guard routes", "add a route with this spelling if it is another resource"
		for _, reader := range slices.Sorted(maps.Keys(total)) {
			s := total[reader]
			state := fmt.Sprintf("%d requests of the last day for %s, such as %s", s.Count, r.Method+" "+r.Host+r.Path,
				strconv.QuoteToASCII(s.Sent))
			j.feature(key, r.Status == gateway.Active, state, fmt.Sprintf("refused, because of %s", reader), mend)
			j.feature(key, r.Status == gateway.Trial, state, fmt.Sprintf("refused after the trial, because of %s", reader), mend)
		}
	}
}

// Administration is the code of the challenge that mfa.guard_administration puts in front of endpoints.
const Administration = "ADMINISTRATION"

// OwnActions returns whether an action is built in, or is one that the configuration puts before an endpoint.
func OwnActions(c config.MFA) func(code string) bool {
	own := slices.Collect(maps.Values(c.Guarded))
	return func(code string) bool {
		return mfa.BuiltIn(code) || code == Administration || slices.Contains(own, code)
	}
}

// judgeServiceActions names the actions of keys and routes of earlier versions that a new one would not get.
func (j *judge) judgeServiceActions(c config.Config, actions []mfa.Action, keys []servicekey.Key,
	routes []gateway.Route) {
	type use struct {
		by, code string
		active   bool // a route that decides
	}
	var uses []use
	for _, k := range keys {
		for _, code := range k.Actions {
			uses = append(uses, use{"service-key " + k.Name, code, false})
		}
	}
	for _, r := range routes {
		if r.Mode == gateway.Guarded {
			uses = append(uses, use{r.Method + " " + r.Host + r.Path, r.ActionCode, r.Status == gateway.Active})
		}
	}
	isOwn := OwnActions(c.MFA)
	for _, u := range uses {
		state := fmt.Sprintf("action %s of %s", u.code, u.by)
		own := isOwn(u.code)
		known := slices.ContainsFunc(actions, func(a mfa.Action) bool { return a.Code == u.code })
		j.feature("service actions", own && u.active, state, "the action is one of this service, and the route refuses "+
			"every request", "choose another action")
		j.feature("service actions", own && !u.active, state, "the action is one of this service, and a key cannot start it",
			"choose another action")
		j.feature("service actions", !own && !known, state, "the action has no texts and the default policy",
			"create the action at /admin/system/mfa/actions")
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// uncoordinatedEffect is the effect of processes that serve one database without a cluster.
const uncoordinatedEffect = "each process counts rate limits alone, so together they admit a multiple"

// judgeProcesses reports processes that serve one database without a cluster.
func (j *judge) judgeProcesses(ctx context.Context, db *persistence.DB) {
	alone, clustered, err := db.Servers(ctx)
	state := fmt.Sprintf("%d processes serve this database, %d of them without a cluster", alone+clustered, alone)
	j.control("cluster.join", err == nil && Uncoordinated(alone, clustered), state, uncoordinatedEffect,
		"set cluster.gossip_addr, cluster.actor_addr and cluster.join of each process, or stop all but one")
}

// Uncoordinated reports whether of several processes on a database some are without a cluster.
func Uncoordinated(alone, clustered int) bool { return alone > 0 && alone+clustered > 1 }

// LogUncoordinated logs that.
func LogUncoordinated(log *slog.Logger, alone, clustered int) {
	log.Warn("processes serve one database without a cluster", "processes", alone+clustered, "without", alone,
		"effect", uncoordinatedEffect)
}
