package firewall

import (
	"context"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// Limits decides about the rate limits of other services.
type Limits struct{ Evaluator *firewall.Evaluator }

func (g Limits) Endpoints() []rest.Endpoint {
	return rest.Section(extension,
		rest.Post("/limit", "Count a request of another service under its limit", rest.Service, g.decide, fault.Forbidden).
			Try(`{"rule":"orders","entity":"192.0.2.1"}`).
			Doc("countUnderLimit", "A limit of a service is the active rules of type rate_limit with the name of the "+
				"service's key as appId and the resource 'LIMIT <rule>'. All of them admit the request, or none counts it. "+
				"Rules on trial refuse nothing. The response has the headers RateLimit-Policy and RateLimit of all rules, "+
				"and the numbers of the rule that is nearest to its limit. 503: not decided; the request may have been "+
				"counted. A repeated request counts again."),
	).Extended()
}

type limitRequest struct {
	Rule   string `json:"rule" minLength:"1" maxLength:"128" doc:"name of the limit" example:"orders"`
	Entity string `json:"entity" doc.minLength:"1" doc.maxLength:"128" doc:"user, address or country" example:"192.0.2.1"`
	Cost   *int64 `json:"cost" minimum:"1" maximum:"1000" doc:"requests that it counts as; default 1" example:"1"`
	Peek   *bool  `json:"peek" doc:"true: nothing is counted" example:"false"`
}

// limitState is the decision about a request.
type limitState struct {
	Allowed   bool  `json:"allowed" doc:"whether the request may be served"`
	Limit     int64 `json:"limit" doc:"allowed requests in the period of the rule" example:"100"`
	Remaining int64 `json:"remaining" doc:"requests that remain" example:"99"`
	ResetMs   int64 `json:"resetMs" doc:"ms until the oldest counted request expires" example:"60000"`
	RetryMs   int64 `json:"retryMs" doc:"ms until the request can be allowed, at the earliest; 0: now" example:"0"`
}

func (g Limits) decide(ctx context.Context, who rest.Caller,
	in limitRequest) (out rest.Reply[rest.Data[limitState]], err error) {
	var ruling firewall.Ruling
	s, err := g.Evaluator.Limit(ctx, firewall.LimitQuery{Service: who.Service, Limit: in.Rule, Entity: in.Entity,
		Cost: rest.Or(in.Cost, 1), Peek: rest.Or(in.Peek, false)}, &ruling)
	if err != nil {
		return out, err
	}
	if len(ruling.State) > 0 {
		out.Headers = []rest.Header{{Name: "RateLimit-Policy", Value: string(ruling.Policy)},
			{Name: "RateLimit", Value: string(ruling.State)}}
	}
	ms := func(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
	out.Body.Data = limitState{s.Allowed, s.Limit, s.Remaining, ms(s.Reset), ms(s.Retry)}
	return out, nil
}
