// Package firewall serves section 4.5 of the interface, the administration of request rules:
// three endpoints, and an extension that explains the decision about one request. It reads and
// writes the wire shape of section 2.3 of the interface and leaves every rule about rules to
// domain/guard/firewall.
//
// Start reading at Endpoints, then request.go for the fields of a body.
package firewall

import (
	"context"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

const section = "4.5 Firewall rules"

// Group serves the section. The list shows the stored rules, not this node's snapshot, so that
// administrators see writes of other nodes at once.
type Group struct{ Admin *firewall.Admin }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get(firewall.RulesPath, "List firewall rules", rest.Tenant, g.list, fault.InvalidField).
			Try("status=ACTIVE").
			Doc("listFirewallRules", "The stored rules, in order of creation."),
		rest.NamesBy(rest.Post(firewall.RulesPath, "Create a firewall rule", rest.Tenant, g.add, fault.InvalidField,
			fault.RecordAlreadyExist).
			Body(rest.LargeBody).
			Try(`{"label":"audit-user","type":"rate_limit","period":60000,"limit":100,"expireAt":0,
				"targetEntityType":"USER_ID","targetResources":["GET /admin/audit"],"status":"ACTIVE"}`).
			Doc("addFirewallRule",
				"A rule limits the rate (rate_limit) or decides (whitelist, blacklist, whitelist_force) for entities and "+
					"resources. It takes effect on every node within one second."), g.targets),
		rest.NamesBy(rest.Patch(firewall.RulesPath, "Update a firewall rule", rest.Tenant, g.change, fault.InvalidField,
			fault.RecordNotFound).
			Body(rest.LargeBody).
			Try(`{"label":"audit-user","limit":200}`).
			Doc("updateFirewallRule",
				"The label identifies the rule. Fields that are not sent stay unchanged; null clears limit and "+
					"period."), g.retargets),
	).For(rest.Admin).MarkSensitive()
}

type firewallRule struct {
	AppID              string   `json:"appId"`
	Label              string   `json:"label"`
	Type               string   `json:"type" enum:"rate_limit,whitelist,blacklist,whitelist_force"`
	Period             *int64   `json:"period" doc:"rolling window in ms"`
	Limit              *int64   `json:"limit" doc:"allowed requests in period"`
	ExpireAt           int64    `json:"expireAt" doc:"epoch ms; 0: never"`
	TargetEntityType   string   `json:"targetEntityType" enum:"USER_ID,IP,COUNTRY_CODE,APP_ID"`
	TargetEntities     []string `json:"targetEntities" doc:"user ids, addresses and networks, or country codes"`
	TargetResources    []string `json:"targetResources" doc:"'<METHOD> <path>', or 'LIMIT <name>' for a service"`
	TargetAllEntities  bool     `json:"targetAllEntities"`
	TargetAllResources bool     `json:"targetAllResources"`
	Status             string   `json:"status" enum:"ACTIVE,INACTIVE"`
	DryRun             bool     `json:"dryRun,omitempty" doc:"extension, present if true: the rule refuses nothing"`
}

func (g Group) list(ctx context.Context, _ rest.Caller, in filter) ([]firewallRule, error) {
	all, err := g.Admin.Store.Rules(ctx, firewall.Query{AppID: in.AppID, Status: (*firewall.Status)(in.Status)})
	return rest.Each(all, show), err
}

func show(r firewall.Rule) firewallRule {
	return firewallRule{AppID: r.AppID, Label: r.Label, Type: string(r.Type), Period: r.PeriodMs, Limit: r.Limit,
		ExpireAt: r.ExpireAt, TargetEntityType: string(r.EntityType), TargetEntities: r.Entities,
		TargetResources: r.Resources, TargetAllEntities: r.AllEntities, TargetAllResources: r.AllResources,
		Status: string(r.Status), DryRun: r.DryRun}
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (rest.None, error) {
	return rest.None{}, g.Admin.Add(ctx, author(who, in.Force), in.rule())
}

// targets returns the users that a new rule targets.
func (g Group) targets(_ context.Context, _ rest.Caller, in addRequest) (rest.Named, error) {
	return usersOf(in.rule()), nil
}

// retargets returns the users that a rule targets before and after a change.
func (g Group) retargets(ctx context.Context, _ rest.Caller, in changeRequest) (n rest.Named, err error) {
	found, err := g.Admin.Store.Rules(ctx, firewall.Query{Labels: []string{in.Label}})
	for _, r := range found {
		r.Entities = append(r.Entities, rest.Or(in.TargetEntities, nil)...)
		n = usersOf(r)
	}
	return n, err
}

func usersOf(r firewall.Rule) rest.Named {
	n := rest.Named{Matter: rest.General}
	if r.EntityType == firewall.UserID {
		n.Users = r.Entities
	}
	return n
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (rest.None, error) {
	return rest.None{}, g.Admin.Change(ctx, author(who, in.Force), in.change())
}

func author(who rest.Caller, force *bool) firewall.Author {
	return firewall.Author{By: who.By(), Client: clientOf(who), Force: rest.Or(force, false)}
}

func clientOf(who rest.Caller) firewall.Client {
	return firewall.Client{UserID: who.UserID, IP: who.IP, Country: who.Country}
}
