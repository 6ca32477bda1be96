package demo

import (
	"context"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/permit/resource"
	httpapi "castellan/http"
	"castellan/persistence/account"
	"castellan/persistence/guard"
	"castellan/persistence/permit"
)

// duties are the roles of the staff with their permitted calls. All other calls are refused.
var duties = []struct {
	code, name string
	calls      []string
}{
	{"kyc-reviewer", "Identity checks", []string{"GET /admin/list-users", "GET /admin/user-names",
		"GET /user/get-documents",
		"GET /admin/get-document-file", "POST /user/update-document", "GET /admin/levels-info",
		"GET /admin/login-history", "GET /user/get-kyc-images", "POST /user/update-kyc", "POST /user/update-confirmed",
		"GET /admin/user/get-users-without-aml-confirmed", "POST /admin/user/update-user-aml-confirmed",
		"POST /level/update-level", "GET /blockage/get-blockage-history", "GET /admin/kyc-case", "POST /admin/presence"}},
	{"treasury", "Treasury", []string{"GET /admin/list-users", "GET /admin/user-names",
		"GET /admin/get-last-rates-by-date", "GET /admin/currency/get-all", "POST /admin/transaction/adjust-balance",
		"GET /admin/get-waiting-info-transactions", "POST /admin/update-status-transaction",
		"GET /admin/get-withdrawal-crypto-queue", "POST /admin/update-wallet-withdrawal-crypto-queue",
		"GET /process/get-process-admin", "GET /admin/get-member-asset-balances", "GET /balance/get-daily-position",
		"GET /admin/get-member-asset-balances-sum", "GET /admin/transaction/adjust-balance/preview",
		"GET /get-all-currency-network", "GET /admin/blockage/get-all-block-histories",
		"GET /blockage/get-blockage-history", "POST /blockage/insert-blockage-history",
		"POST /blockage/update-blockage-history", "GET /process/get-provider-balances",
		"GET /process/get-provider-balances-of-asset", "GET /process/get-provider-balances-total", "GET /admin/jobs",
		"GET /admin/jobs/{id}", "POST /admin/jobs/{id}/cancel", "GET /admin/approvals", "GET /admin/approvals/{id}",
		"POST /admin/approvals/{id}/approve", "POST /admin/approvals/{id}/refuse",
		"POST /integration/begin-accounting-integration", "GET /admin/audit"}},
	{"support", "Support", []string{"GET /admin/list-users", "GET /admin/user-names",
		"GET /admin/login-history", "GET /admin/login-history-v2", "GET /admin/get-email-change-history",
		"GET /admin/refused-logins", "GET /admin/user/security", "POST /admin/send-notification"}},
}

// roles adds the roles with their grants, and the pages of a back office.
func (r *run) roles(ctx context.Context) {
	store := permit.NewResources(r.DB)
	r.Clock.set(r.start)
	a := resource.Admin{Store: store, Accounts: account.NewUsers(r.DB), Table: httpapi.Table(), Dev: r.Dev,
		Changes: r.changes(change.Roles, store.Lock)}
	ids := map[string]int64{}
	for _, e := range value(store.Resources(ctx, resource.API)) {
		ids[e.Code] = e.ID
	}
	by := audit.By{UserID: r.team[0].ID}
	for _, d := range duties {
		role := value(a.AddRole(ctx, by, d.code, d.name))
		for _, call := range d.calls {
			within(call, func() { value(a.Grant(ctx, by, role.ID, ids[call], resource.Allow)) })
		}
	}
	page := value(store.AddType(ctx, resource.Type{Name: "Page", Code: "page", Context: resource.UI,
		Status: resource.Active, Stamp: r.stamp()}))
	for _, path := range []string{"/dashboard", "/users", "/treasury", "/reports"} {
		value(store.AddResource(ctx, resource.Resource{Code: path, Name: path[1:], Status: resource.Active,
			TypeID: page, Context: resource.UI, Stamp: r.stamp()}))
	}
}

func (r *run) stamp() resource.Stamp {
	by, now := r.team[0].ID, r.Clock.Now()
	return resource.Stamp{CreatedBy: by, CreatedAt: now, UpdatedBy: by, UpdatedAt: now}
}

// changes are those of a slice, stamped by the clock of the run.
func (r *run) changes(topic change.Topic, lock func(context.Context) error) admin.Changes {
	return admin.Changes{Commit: r.DB, Now: r.Clock.Now, Topic: topic, Lock: lock}
}

// do makes a change of the administrator, stamped by the clock of the run.
func (r *run) do(ctx context.Context, topic change.Topic, action, target string, apply func(context.Context) error) {
	check(r.changes(topic, nil).Do(ctx, audit.By{UserID: r.team[0].ID}, action,
		func(ctx context.Context) (admin.Done, error) { return admin.Done{Target: target}, apply(ctx) }))
}

// rules adds rules of the firewall of every type and status. None blocks a viewer of the demo: the blocking rules apply
// to documentation addresses, or only count.
func (r *run) rules(ctx context.Context) {
	store := guard.NewFirewall(r.DB)
	for i, rule := range []firewall.Rule{
		{Label: "known-attackers", Type: firewall.Blacklist, EntityType: firewall.IP, Status: firewall.Active,
			Entities: []string{"203.0.113.66", "198.51.100.128/25"}, AllResources: true},
		{Label: "login-rate", Type: firewall.RateLimit, EntityType: firewall.IP, Status: firewall.Active, DryRun: true,
			PeriodMs: new(int64(60_000)), Limit: new(int64(30)), AllEntities: true, Resources: []string{"POST /auth/login"}},
		{Label: "partner-network", Type: firewall.Whitelist, EntityType: firewall.IP, Status: firewall.Active,
			Entities: []string{"192.0.2.0/24"}, Resources: []string{"GET /rates/get-currency-rates"}},
		{Label: "office-only", Type: firewall.WhitelistForce, EntityType: firewall.IP, Status: firewall.Inactive,
			Entities: []string{"192.0.2.0/28"}, Resources: []string{"POST /admin/transaction/adjust-balance"}},
		{Label: "no-logins-from-kp", Type: firewall.Blacklist, EntityType: firewall.CountryCode, Status: firewall.Active,
			Entities: []string{"KP"}, Resources: []string{"POST /auth/login"}},
		{Label: "campaign-2025", Type: firewall.RateLimit, EntityType: firewall.IP, Status: firewall.Active,
			PeriodMs: new(int64(1_000)), Limit: new(int64(5)), AllEntities: true,
			ExpireAt: r.Now.AddDate(0, -2, 0).UnixMilli(), Resources: []string{"GET /announcement/get"}},
	} {
		rule.AppID = firewall.DefaultApp
		rule.Entities, rule.Resources = append([]string{}, rule.Entities...), append([]string{}, rule.Resources...)
		within(rule.Label, func() { check(rule.Check()) })
		r.Clock.set(r.start.Add(time.Duration(i) * 1000 * time.Hour))
		r.do(ctx, change.Firewall, "FIREWALL_RULE_ADD", rule.Label,
			func(ctx context.Context) error { return store.Add(ctx, rule) })
	}
}
