package firewall

import (
	"context"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
)

// Limits of other services (D-WAF-21): a rate_limit whose appId is the name of a service client and whose resource is
// "LIMIT <name>". The service asks before it serves a request of its own, and names the limit and the entity.

// limitPrefix begins the resources of such rules.
const limitPrefix = "LIMIT "

// maxLimitName is the longest name of a limit, in bytes.
const maxLimitName = 128

func isLimit(resource string) bool { return strings.HasPrefix(resource, limitPrefix) }

func limitName(s string) bool {
	return s != "" && len(s) <= maxLimitName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

type limitKey struct{ app, resource string }

// limit holds the rules of one limit of a service.
type limit struct {
	group *group // of those in force
	first *Rate  // of any status
}

// buildLimits compiles the limits of all services.
func (s *Snapshot) buildLimits(made map[string]*group, nowMs int64) {
	inForce := map[limitKey][]int{}
	s.limits = map[limitKey]*limit{}
	for i := range s.rules {
		r := &s.rules[i]
		if s.rates[i] == nil || !s.rates[i].any {
			continue
		}
		for _, resource := range r.Resources {
			key := limitKey{r.AppID, resource}
			if !isLimit(resource) {
				continue
			}
			if s.limits[key] == nil {
				s.limits[key] = &limit{first: s.rates[i]}
			}
			if r.Status == Active && !r.Expired(nowMs) {
				inForce[key] = append(inForce[key], i)
			}
		}
	}
	for key, of := range inForce {
		s.limits[key].group = s.shared(made, of)
	}
}

// judgeLimit is Judge for a limit.
func (s *Snapshot) judgeLimit(key limitKey, c Client, nowMs int64, rates []*Rate) (Verdict, []*Rate) {
	l := s.limits[key]
	if l == nil {
		return Allow, rates
	}
	var m hits
	m.gather(l.group, &c, nowMs)
	return m.rates(nowMs, rates)
}

// LimitQuery is a request of a service under one of its limits.
type LimitQuery struct {
	Service, Limit string // the name of the service client, and that of the limit
	Entity         string // a user, an address or a country, as the rules of the limit count
	Cost           int64  // admissions that it counts as, all or none, 1 to 1000
	Peek           bool   // it counts nothing
}

// LimitState is the decision, with the numbers of the rule that is nearest to its limit.
type LimitState struct {
	Allowed          bool
	Limit, Remaining int64         // admissions
	Reset            time.Duration // until the oldest admission leaves
	Retry            time.Duration // until the request can be admitted, at the earliest; 0: now
}

// client returns the entity as a client of the rules. A rule of APP_ID counts the service as a whole.
func (q LimitQuery) client() Client {
	c := Client{UserID: q.Entity, Service: q.Service}
	if p, single, err := parseIP(q.Entity); err == nil && single {
		c.IP = p.Addr()
	}
	if geo.Assigned(q.Entity) {
		c.Country = q.Entity
	}
	return c
}

// Limit decides about a request of a service. Rules on trial count and refuse nothing; without a rule in force every
// request is allowed. Its errors are INVALID_FIELD for rule and entity, and UNAVAILABLE if the counters cannot be
// reached: then the request can have been counted, but is not admitted.
func (e *Evaluator) Limit(ctx context.Context, q LimitQuery, k *Ruling) (s LimitState, err error) {
	k.Verdict, k.RetryAfter, k.Policy, k.State, k.rates = Allow, 0, k.Policy[:0], k.State[:0], k.rates[:0]
	rules, nowMs, key := e.Rules(), e.Now().UnixMilli(), limitKey{q.Service, limitPrefix + q.Limit}
	l := rules.limits[key]
	if l == nil {
		return s, fault.Invalid("rule", "is not a limit of this service")
	}
	// A name of this kind is that of a counter that entities share (ratelimit.Tally).
	if entityProblem(UserID, q.Entity) != "" || strings.HasPrefix(q.Entity, "~") {
		return s, fault.Invalid("entity", "must be 1 to 128 bytes of printable text that does not begin with ~")
	}
	c := q.client()
	if g := l.group; g != nil && (g.counts(IP) && !c.IP.IsValid() || g.counts(CountryCode) && c.Country == "") {
		return s, fault.Invalid("entity", "must be an IP address or a country's code, as the limit counts them")
	}
	_, k.rates = rules.judgeLimit(key, c, nowMs, k.rates)
	live, err := e.count(ctx, k, c, q)
	if err != nil {
		return s, err
	}
	s = LimitState{Allowed: k.Verdict == Allow, Limit: l.first.Limit, Remaining: l.first.Limit, Retry: k.RetryAfter}
	if live == 0 {
		live = len(k.rates) // on trial
	}
	for i, r := range k.rates[:live] {
		if left := max(0, r.Limit-k.stands[i].Used); i == 0 || left < s.Remaining {
			s.Limit, s.Remaining, s.Reset = r.Limit, left, time.Duration(k.stands[i].Reset)
		}
	}
	return s, nil
}

// counts reports whether a rule of the group counts all entities of a type.
func (g *group) counts(t EntityType) bool { return len(g.all[kindIndex[t]].rates) > 0 }
