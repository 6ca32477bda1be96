package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/persistence/guard"
)

type wafCmd struct {
	List     wafListCmd     `cmd:"" help:"List the firewall rules."`
	Disable  wafDisableCmd  `cmd:"" help:"Set a rule to INACTIVE, on every node within one second."`
	Explain  wafExplainCmd  `cmd:"" help:"Explain which rules match a request, and which one decides."`
	Counters wafCountersCmd `cmd:"" help:"List the fullest counters of rate limits on all nodes."`
	Reset    wafResetCmd    `cmd:"" help:"Reset a counter of a rate limit."`
}

type wafListCmd struct {
	App    string `help:"List only rules of this application."`
	Status string `help:"List only rules with this status." enum:"ACTIVE,INACTIVE," default:""`
}

func (c wafListCmd) Run(e *env, v *app.Deployment) error {
	var q firewall.Query
	if c.App != "" {
		q.AppID = &c.App
	}
	if status := firewall.Status(c.Status); status != "" {
		q.Status = &status
	}
	rules, err := guard.NewFirewall(v.DB).Rules(e.ctx, q)
	if err != nil {
		return err
	}
	w := e.table()
	for _, r := range rules {
		state := string(r.Status)
		if r.Expired(time.Now().UnixMilli()) {
			state += " expired"
		}
		if r.DryRun {
			state += " dryRun"
		}
		what := string(r.Type)
		if r.Type == firewall.RateLimit && r.Limit != nil && r.PeriodMs != nil {
			what += fmt.Sprintf(" %d in %s", *r.Limit, time.Duration(*r.PeriodMs)*time.Millisecond)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s %s\t%s\n", r.Label, r.AppID, state, what, r.EntityType,
			targetSummary(r.AllEntities, r.Entities), targetSummary(r.AllResources, r.Resources))
	}
	return w.Flush()
}

// targetSummary returns the targets of a rule, on one line.
func targetSummary(all bool, list []string) string {
	const most = 5
	switch {
	case all:
		return "all"
	case len(list) == 0:
		return "none"
	case len(list) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

type wafDisableCmd struct {
	Label string `arg:"" help:"Label of the rule."`
}

func (wafDisableCmd) Help() string {
	return `Use it if a rule blocks its own endpoints: no rule applies to the command line.
"castellan waf list --status ACTIVE" lists the candidates, and "castellan waf explain"
prints the rule that decides.`
}

func (c wafDisableCmd) Run(e *env, v *app.Deployment) error {
	admin := firewall.Admin{Store: guard.NewFirewall(v.DB), Changes: v.Changes(change.Firewall),
		App: e.cfg.Firewall.AppID, Known: app.Resources(e.cfg)}
	inactive := firewall.Inactive
	err := admin.Change(e.ctx, firewall.Author{By: audit.Operator, Force: true},
		firewall.Change{Label: c.Label, Status: &inactive})
	err = explained(err, fault.RecordNotFound, "there is no rule labelled %q", c.Label)
	return e.print(err, "disabled", c.Label)
}

type wafExplainCmd struct {
	Resource string `arg:"" help:"Method and path of the request, such as 'POST /auth/login'."`
	IP       string `help:"Address of the client." placeholder:"ADDRESS"`
	User     string `help:"Id of the user of the session." placeholder:"ID"`
	Country  string `help:"Country of the client (default: the country of the address)." placeholder:"CODE"`
	Service  string `help:"Service client that calls, or whose limit 'LIMIT <name>' is the request." placeholder:"NAME"`
}

func (wafExplainCmd) Help() string {
	return `Evaluates the stored rules as a node does. Counters are in the memory of the nodes, so
this command cannot report whether a rate limit is reached; the endpoint
POST /admin/system/waf/explain can.`
}

func (c wafExplainCmd) Run(e *env) error {
	client := firewall.Client{UserID: c.User, Country: c.Country, Service: c.Service}
	known := app.Resources(e.cfg)
	resource, err := known.Canonical(c.Resource)
	if err != nil {
		return fmt.Errorf("%q %w", c.Resource, err)
	}
	if c.IP != "" {
		if client.IP, err = netip.ParseAddr(c.IP); err != nil {
			return fmt.Errorf("%q is not an IP address", c.IP)
		}
		client.IP = client.IP.Unmap().WithZone("")
	}
	if c.Country != "" && !geo.Assigned(c.Country) {
		return errors.New("--country must be a code of two capital letters (ISO 3166-1 alpha-2)")
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	if client.Country == "" && client.IP.IsValid() {
		where, err := app.Locator(e.cfg)
		if err != nil {
			return err
		}
		client.Country = where.Country(client.IP)
	}
	live := firewall.NewCache(guard.NewFirewall(v.DB), e.cfg.Firewall.AppID, time.Now)
	if err := live.Reload(e.ctx); err != nil {
		return err
	}
	evaluator := &firewall.Evaluator{Rules: live.Current, Bypass: e.cfg.Firewall.BypassCIDRs, Now: time.Now}
	x, err := evaluator.Explain(e.ctx, resource, client)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "%s %s", x.Decision, resource)
	if x.DecidedBy != "" {
		fmt.Fprintf(e.out, ", by %s", x.DecidedBy)
	}
	fmt.Fprintln(e.out)
	w := e.table()
	for _, k := range x.Rules {
		fmt.Fprintf(w, "%s\t%s\t%s\n", k.Rule.Label, k.Rule.Type, k.Reason)
	}
	return w.Flush()
}
