package firewall

import (
	"context"
	"net/netip"
	"strings"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/http/rest"
	"castellan/http/wire"
)

const extension = "Extensions: firewall"

// Explain serves the extension that explains the rules for one request. It reads the counters and counts nothing.
type Explain struct {
	Evaluator *firewall.Evaluator
	Known     firewall.Resources
	// CountryOf returns the country of an address, for requests without a country.
	CountryOf func(netip.Addr) string
	// Audit is the log on which a rule is simulated.
	Audit audit.Store
	App   string
}

func (g Explain) Endpoints() []rest.Endpoint {
	return rest.Section(extension,
		rest.Post("/admin/system/waf/explain", "Explain which firewall rules apply to a request",
			rest.Tenant, g.explain,
			fault.InvalidField).
			Doc("explainFirewall",
				"No counter changes. The response follows the same rules as a real request at this moment.").
			NamesNoUser("it changes nothing"),
		rest.Post("/admin/system/waf/rehearse", "Simulate a firewall rule on the requests of the last 24 hours",
			rest.Tenant, g.rehearse, fault.InvalidField).
			Body(rest.LargeBody).
			Try(`{"label":"no-deletions","type":"blacklist","expireAt":0,"targetEntityType":"COUNTRY_CODE",
				"targetEntities":["AQ"],"targetResources":["DELETE /asset/withdrawal-addresses"]}`).
			Doc("rehearseFirewallRule",
				"Nothing is saved. The rule is validated as in addFirewallRule and simulated as active, without dryRun and "+
					"without expiry. The simulation uses the audit log: reads, and acts that several endpoints share, are not "+
					"included.").
			NamesNoUser("it changes nothing"),
	).For(rest.Admin).Extended()
}

type explainRequest struct {
	UserID      *string `json:"userId" maxLength:"128" doc:"user of a valid session; omit for no session"`
	Service     *string `json:"service" maxLength:"64" doc:"service client with a valid key" example:"wallet"`
	IP          *string `json:"ip" doc:"address of the client"`
	CountryCode *string `json:"countryCode" doc:"country of the client; default: the country of the address"`
	Resource    string  `json:"resource" doc:"as in a rule; '<METHOD> *': no route" example:"POST /auth/login"`
}

type explanation struct {
	Decision  string                `json:"decision" enum:"ALLOW,DENY,RATE_LIMITED"`
	Rules     []firewallRuleVerdict `json:"rules" doc:"every rule, in order of creation"`
	DecidedBy *string               `json:"decidedBy" doc:"label of the rule that decided; null: none"`
}

type firewallRuleVerdict struct {
	Label   string `json:"label"`
	Type    string `json:"type" enum:"rate_limit,whitelist,blacklist,whitelist_force"`
	Matched bool   `json:"matched" doc:"whether the rule applies to the resource and targets the client"`
	Reason  string `json:"reason" schema:"FirewallReason"`
	Used    *int64 `json:"used" doc:"requests counted now; null if the rule does not count this one"`
	Limit   *int64 `json:"limit" doc:"limit of the rule"`
	ResetMs *int64 `json:"resetMs" doc:"ms until a counted request expires; null if the rule does not count it"`
}

func (g Explain) explain(ctx context.Context, _ rest.Caller, in explainRequest) (explanation, error) {
	resource, c, err := g.read(in)
	if err != nil {
		return explanation{}, err
	}
	x, err := g.Evaluator.Explain(ctx, resource, c)
	if err != nil {
		return explanation{}, err
	}
	out := explanation{Decision: string(x.Decision), Rules: make([]firewallRuleVerdict, len(x.Rules)),
		DecidedBy: rest.Filled(x.DecidedBy)}
	for i, k := range x.Rules {
		out.Rules[i] = firewallRuleVerdict{Label: k.Rule.Label, Type: string(k.Rule.Type), Matched: k.Matched,
			Reason: string(k.Reason), Limit: k.Rule.Limit}
		if k.Counted {
			out.Rules[i].Used, out.Rules[i].ResetMs = &k.Used, &k.ResetMs
		}
	}
	return out, nil
}

// read reports all invalid fields at once.
func (g Explain) read(in explainRequest) (resource string, c firewall.Client, err error) {
	var ps fault.Problems
	if method, all := strings.CutSuffix(in.Resource, " *"); all && method != "" && !strings.ContainsAny(method, " \t") {
		resource = in.Resource
	} else if resource, err = g.Known.Canonical(in.Resource); err != nil {
		ps.Require(false, "resource", "%v", err)
	}
	c.UserID, c.Service = rest.Or(in.UserID, ""), rest.Or(in.Service, "")
	if in.IP != nil {
		c.IP, err = netip.ParseAddr(*in.IP)
		ps.Require(err == nil, "ip", "is not an IP address")
		c.IP = c.IP.Unmap().WithZone("")
	}
	switch {
	case in.CountryCode != nil && !geo.Assigned(*in.CountryCode):
		ps.Require(false, "countryCode", "is not a country's code (ISO 3166-1 alpha-2, capital letters)")
	case in.CountryCode != nil:
		c.Country = *in.CountryCode
	case c.IP.IsValid() && g.CountryOf != nil:
		if code := g.CountryOf(c.IP); geo.Assigned(code) {
			c.Country = code
		}
	}
	return resource, c, fault.All(ps)
}

type rehearsal struct {
	Considered int            `json:"considered" example:"312" doc:"requests to the rule's resources in the audit log"`
	Stopped    int            `json:"stopped" example:"12" doc:"considered requests that the rule would have refused"`
	Users      int            `json:"users" example:"3" doc:"accounts with a refused request"`
	Accounts   int            `json:"accounts" example:"41" doc:"accounts with a considered request"`
	You        bool           `json:"you" doc:"true: your own requests are refused, or you cannot log in from here"`
	Truncated  bool           `json:"truncated" doc:"true: only the newest 5000 rows of the audit log were read"`
	Examples   []wire.Example `json:"examples" doc:"at most 5 refused requests, newest first"`
}

func (g Explain) rehearse(ctx context.Context, who rest.Caller, in addRequest) (out rehearsal, err error) {
	countryOf := g.CountryOf
	if countryOf == nil {
		countryOf = func(netip.Addr) string { return "" }
	}
	x, err := firewall.Rehearser{Evaluator: g.Evaluator, Audit: g.Audit, App: g.App, Known: g.Known,
		CountryOf: countryOf}.Rehearse(ctx, clientOf(who), in.rule())
	return rehearsal{x.Considered, x.Stopped, x.Users, x.Accounts, x.You, x.Truncated, wire.Examples(x.Examples)}, err
}
