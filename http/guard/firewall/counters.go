package firewall

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// Counters serves the counters of rate limits to operators. Country returns the country of an address, "" if it is
// unknown.
type Counters struct {
	Counting *firewall.Counting
	Country  func(netip.Addr) string
}

func (g Counters) Endpoints() []rest.Endpoint {
	return rest.Section(extension,
		rest.Get("/admin/system/waf/counters", "List the fullest counters of rate limits", rest.Tenant, g.list,
			fault.InvalidField).
			Try("least=0.5&limit=10").
			Doc("listFirewallCounters",
				"The counters of all nodes, fullest first, without cached and reserved requests. silent names the nodes "+
					"that did not answer within 500 ms: their counters are missing."),
		rest.NamesBy(rest.Post("/admin/system/waf/counters/reset", "Reset a counter of a rate limit", rest.Tenant, g.reset,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"label":"audit-user","entity":"192.0.2.1","reason":"A test by the office"}`, fault.RecordNotFound).
			Doc("resetFirewallCounter",
				"The entity gets its whole limit again, on every node within one second. Requests that a node has reserved "+
					"for the next tenth of a second stay counted."), g.names).
			MarkSensitive(),
	).For(rest.Admin).Extended()
}

type countersRequest struct {
	Label  *string `json:"label" maxLength:"200" doc:"returns only counters of this rule"`
	Entity *string `json:"entity" maxLength:"128" doc:"returns only counters of this entity"`
	Least  *string `json:"least" maxLength:"8" doc:"smallest used share of the limit, 0 to 1; default 0.8" example:"0.8"`
	Limit  *int64  `json:"limit" doc:"number of counters; default 50" minimum:"1" maximum:"500" example:"50"`
}

type counters struct {
	Items  []counter `json:"items"`
	Silent []string  `json:"silent" doc:"nodes that did not answer"`
}

type counter struct {
	Label    string  `json:"label" example:"login-ip"`
	Entity   string  `json:"entity" doc:"address, network, user, country or service" example:"192.0.2.1"`
	Country  *string `json:"country" doc:"of an address or network; else null" example:"TR"`
	Used     int64   `json:"used" doc:"requests that count" example:"9"`
	Limit    int64   `json:"limit" example:"10"`
	PeriodMs int64   `json:"periodMs" example:"60000"`
	ResetMs  int64   `json:"resetMs" doc:"ms until the oldest request expires" example:"41000"`
	RetryMs  int64   `json:"retryMs" doc:"ms until the next request is admitted; 0: now" example:"0"`
	Refused  bool    `json:"refused" doc:"true if a request would be refused now"`
	Node     string  `json:"node" doc:"node that decides"`
	Replica  *string `json:"replica" doc:"node with the copy; null without one" example:"null"`
	Phase    string  `json:"phase" enum:"owning,acting" doc:"state of the counter at its node"`
}

func (g Counters) list(ctx context.Context, _ rest.Caller, in countersRequest) (out counters, err error) {
	q := firewall.CounterQuery{Label: rest.Or(in.Label, ""), Entity: rest.Or(in.Entity, ""),
		Most: int(rest.Or(in.Limit, 50))}
	if q.Least, err = strconv.ParseFloat(rest.Or(in.Least, "0.8"), 64); err != nil || !(q.Least >= 0 && q.Least <= 1) {
		return out, fault.Invalid("least", "must be a number from 0 to 1")
	}
	all, silent := g.Counting.List(ctx, q)
	return counters{rest.Each(all, g.show), append([]string{}, silent...)}, nil
}

func (g Counters) show(c ratelimit.Counter) counter {
	out := counter{Label: c.Label, Entity: c.Entity, Used: c.Used, Limit: c.Limit, PeriodMs: c.Period.Milliseconds(),
		ResetMs: c.Reset.Milliseconds(), RetryMs: c.Retry.Milliseconds(), Refused: c.Retry > 0, Node: c.Node,
		Replica: rest.Filled(c.Replica), Phase: c.Phase}
	network, _, _ := strings.Cut(c.Entity, "/")
	if a, err := netip.ParseAddr(network); err == nil {
		out.Country = rest.Filled(g.Country(a))
	}
	return out
}

type resetRequest struct {
	Label  string `json:"label" maxLength:"200" doc:"rate limit" example:"login-ip"`
	Entity string `json:"entity" minLength:"1" maxLength:"128" doc:"entity of the counter" example:"192.0.2.1"`
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"for the audit log" example:"A test by the office"`
}

type resetCounter struct {
	UsedBefore int64 `json:"usedBefore" doc:"requests that counted before" example:"10"`
}

func (g Counters) reset(ctx context.Context, who rest.Caller, in resetRequest) (rest.Data[resetCounter], error) {
	used, err := g.Counting.Reset(ctx, who.By(), in.Label, in.Entity, in.Reason)
	return rest.Data[resetCounter]{Data: resetCounter{used}}, err
}

// names returns the user whose counter is reset.
func (g Counters) names(_ context.Context, _ rest.Caller, in resetRequest) (rest.Named, error) {
	n := rest.Named{Matter: rest.General}
	if kind, _ := g.Counting.EntityType(in.Label); kind == firewall.UserID {
		n.Users = []string{in.Entity}
	}
	return n, nil
}
