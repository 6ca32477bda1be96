package firewall

import (
	"context"
	"slices"
	"strings"

	"castellan/domain/guard/ratelimit"
)

// Decision is the outcome of an explanation.
type Decision string

// The decisions.
const (
	Allowed     Decision = "ALLOW"
	Refused     Decision = "DENY"
	RateLimited Decision = "RATE_LIMITED"
)

// Reason is the effect of a rule on the decision, or the reason why it has none.
type Reason string

// The reasons.
const (
	OtherApplication Reason = "OTHER_APPLICATION"
	IsInactive       Reason = "INACTIVE"
	IsExpired        Reason = "EXPIRED"
	OtherResource    Reason = "OTHER_RESOURCE"
	UnknownEntity    Reason = "UNKNOWN_ENTITY" // no user, address or country is known
	OtherEntity      Reason = "OTHER_ENTITY"
	KeepsOut         Reason = "KEEPS_OUT" // a whitelist_force that targets another client
	Bypassed         Reason = "BYPASSED"
	OnTrial          Reason = "DRY_RUN"
	Decides          Reason = "DECIDES"
	Outranked        Reason = "OUTRANKED"
	Counts           Reason = "COUNTS" // a rate limit whose counter is not available here
	WithinLimit      Reason = "WITHIN_LIMIT"
	OverLimit        Reason = "OVER_LIMIT"
)

// Considered is one rule with its effect.
type Considered struct {
	Rule    Rule
	Matched bool // it applies to the resource and targets the client
	Reason  Reason
	Counted bool // Used and ResetMs are the counter's
	Used    int64
	ResetMs int64
}

// Explanation is the decision of the rules for one request (D-EXT-01).
type Explanation struct {
	Decision Decision
	Rules    []Considered // in order of creation
	// DecidedBy is the label of the rule that decided; "" if none did.
	DecidedBy string
}

// concerns reports whether a rule belongs to the application, is in effect, and applies to the resource; if not, why.
func (r *Rule) concerns(app, resource string, nowMs int64) (Reason, bool) {
	switch {
	case r.AppID != app:
		return OtherApplication, false
	case r.Status != Active:
		return IsInactive, false
	case r.Expired(nowMs):
		return IsExpired, false
	case (!r.AllResources || isLimit(resource)) && !slices.Contains(r.Resources, resource):
		return OtherResource, false
	}
	return "", true
}

// targets reports whether the client is an entity of the rule; if not, why.
func (r *Rule) targets(c Client) (Reason, bool) {
	value := c.UserID
	switch r.EntityType {
	case CountryCode:
		value = c.Country
	case AppID:
		value = c.Service
	}
	if r.EntityType == IP && !c.IP.IsValid() || r.EntityType != IP && value == "" {
		return UnknownEntity, false
	}
	if r.AllEntities {
		return "", true
	}
	for _, e := range r.Entities {
		if r.EntityType != IP {
			if e == value {
				return "", true
			}
		} else if p, ok := target(r, e); ok && p.Contains(c.IP) {
			return "", true
		}
	}
	return OtherEntity, false
}

// blocksClient reports whether rules block a client from a resource. It looks at every rule as written, so it suits a
// single check.
func blocksClient(rules []Rule, app, resource string, c Client, nowMs int64) bool {
	var force, targeted, blocked bool
	for i := range rules {
		r := &rules[i]
		if r.DryRun || r.Type != WhitelistForce && r.Type != Blacklist {
			continue
		}
		if _, ok := r.concerns(app, resource, nowMs); !ok {
			continue
		}
		_, ok := r.targets(c)
		if r.Type == WhitelistForce {
			force, targeted = true, targeted || ok
		} else {
			blocked = blocked || ok
		}
	}
	return !targeted && (force || blocked)
}

// Explain returns the outcome of a request and its reasons, rule by rule; it counts nothing. For a limit of a service
// (LIMIT <name>), c is the client that LimitQuery.client returns. Without a counter, as on
// the command line, limits are assumed to admit.
func (e *Evaluator) Explain(ctx context.Context, resource string, c Client) (x Explanation, err error) {
	s, nowMs := e.Rules(), e.Now().UnixMilli()
	health := strings.HasPrefix(resource, "GET /health/") // only blacklists apply, and no session is known (D-WAF-08)
	if health {
		c.UserID, c.Service = "", ""
	}
	verdict, rates := s.Judge(resource, c, nowMs, nil)
	if health && !s.Blacklisted(resource, c, nowMs) {
		verdict = Allow
	}
	app, bypassed := s.app, e.Bypassed(c.IP) || health && c.IP.IsLoopback()
	if isLimit(resource) {
		app, bypassed = c.Service, false
		verdict, rates = s.judgeLimit(limitKey{app, resource}, c, nowMs, nil)
	}
	x.Decision = Allowed
	if verdict == Deny && !bypassed {
		x.Decision = Refused
	}
	x.Rules = make([]Considered, len(s.rules))
	decider := -1
	for i := range s.rules {
		k := &x.Rules[i]
		k.Rule = s.rules[i]
		why, ok := k.Rule.concerns(app, resource, nowMs)
		if health && ok && k.Rule.Type == RateLimit {
			why, ok = OtherResource, false
		}
		plays := ok
		if ok {
			why, ok = k.Rule.targets(c)
			plays = ok || k.Rule.Type == WhitelistForce && !health // which blocks all clients it does not target
		}
		k.Matched, k.Reason = ok, why
		switch {
		case !plays:
		case bypassed:
			k.Reason = Bypassed
		case k.Rule.DryRun:
			k.Reason = OnTrial
		default:
			switch {
			case !ok:
				k.Reason = KeepsOut
			case verdict == Count && k.Rule.Type == RateLimit:
				k.Reason = Counts
			default:
				k.Reason = Outranked
			}
			if k.Rule.Type != RateLimit && (decider < 0 || outranks(k, &x.Rules[decider])) {
				decider = i
			}
		}
	}
	if decider >= 0 {
		x.Rules[decider].Reason = Decides
		x.DecidedBy = x.Rules[decider].Rule.Label
	}
	if verdict != Count || bypassed || e.Limiter == nil {
		return x, nil
	}
	demands, stands := make([]ratelimit.Demand, len(rates)), make([]ratelimit.Standing, len(rates))
	for i, r := range rates {
		demands[i] = ratelimit.Demand{Key: r.Key(c), Limit: r.Limit, Period: r.Period}
	}
	if err := e.Limiter.Look(ctx, demands, stands); err != nil {
		return x, err
	}
	for i := range x.Rules {
		k := &x.Rules[i]
		at := slices.IndexFunc(rates, func(r *Rate) bool { return r.Label == k.Rule.Label })
		if at < 0 {
			continue
		}
		k.Counted, k.Used, k.ResetMs = true, stands[at].Used,
			(max(stands[at].Reset, stands[at].Retry)+999_999)/1_000_000
		switch {
		case k.Rule.DryRun:
		case stands[at].Retry == 0:
			k.Reason = WithinLimit
		default:
			k.Reason = OverLimit
			if x.Decision == Allowed {
				x.Decision, x.DecidedBy = RateLimited, k.Rule.Label
			}
		}
	}
	return x, nil
}

// outranks compares two rules that each would decide. A whitelist_force that targets the client precedes one that
// blocks it.
func outranks(a, b *Considered) bool { return weight(a) < weight(b) }

func weight(k *Considered) int {
	switch {
	case k.Rule.Type == WhitelistForce && k.Matched:
		return 0
	case k.Rule.Type == WhitelistForce:
		return 1
	case k.Rule.Type == Blacklist:
		return 2
	}
	return 3
}
