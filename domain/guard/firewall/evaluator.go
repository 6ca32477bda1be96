package firewall

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"castellan/domain/guard/ratelimit"
)

// Evaluator judges requests by the snapshot of the rules and, if that requires it, by the counters.
type Evaluator struct {
	Rules   func() *Snapshot
	Limiter ratelimit.Limiter
	// Bypass holds the networks that no rule applies to (D-WAF-12).
	Bypass []netip.Prefix
	Now    func() time.Time

	// The numbers of requests by outcome, for the metrics. Unsure are those with unavailable counters. Tried are
	// those that only a rule on trial would have refused; they also count among the others.
	Allowed, Denied, Limited, Unsure, Tried atomic.Int64
}

// Ruling is the outcome of a request. Check fills it in and reuses its memory: a caller who keeps one for many
// requests allocates nothing.
type Ruling struct {
	// Verdict is Allow, Deny, or Count if a rate limit refuses the request.
	Verdict Verdict
	// RetryAfter is the time until a rate limit admits a request again.
	RetryAfter time.Duration
	// Policy and State are the values of the headers RateLimit-Policy and RateLimit; empty if no rate limit applied
	// (D-WAF-10). They are valid until the next Check.
	Policy, State []byte

	rates   []*Rate
	demands []ratelimit.Demand
	stands  []ratelimit.Standing
}

// Needs returns the parts of a client that are needed to judge a request for the resource.
func (e *Evaluator) Needs(resource string) Needs { return e.Rules().Needs(resource) }

// Bypassed reports whether an address is exempt from all rules.
func (e *Evaluator) Bypassed(ip netip.Addr) bool { return within(e.Bypass, ip) }

func within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Blacklisted reports whether a blacklist blocks a client and no whitelist_force allows it.
func (e *Evaluator) Blacklisted(resource string, c Client) bool {
	if e.Bypassed(c.IP) || !e.Rules().Blacklisted(resource, c, e.Now().UnixMilli()) {
		return false
	}
	e.Denied.Add(1)
	return true
}

// Check judges a request and counts it if necessary. Its error is the counter's.
func (e *Evaluator) Check(ctx context.Context, resource string, c Client, k *Ruling) (err error) {
	k.Verdict, k.RetryAfter, k.Policy, k.State, k.rates = Allow, 0, k.Policy[:0], k.State[:0], k.rates[:0]
	if e.Bypassed(c.IP) {
		return nil
	}
	s, nowMs := e.Rules(), e.Now().UnixMilli()
	var verdict Verdict
	verdict, k.rates = s.Judge(resource, c, nowMs, k.rates)
	if verdict != Deny && s.trial != nil {
		if would, _ := s.trial.Judge(resource, c, nowMs, nil); would == Deny {
			e.Tried.Add(1)
		}
	}
	switch verdict {
	case Deny:
		k.Verdict = Deny
		e.Denied.Add(1)
	case Count:
		if _, err = e.count(ctx, k, c, LimitQuery{}); k.Verdict == Count {
			e.Limited.Add(1)
		}
	}
	return err
}

// count queries the counters. The first live ones of its rates refuse; those on trial are counted after them, each by
// itself, so that they change nothing.
func (e *Evaluator) count(ctx context.Context, k *Ruling, c Client, q LimitQuery) (live int, err error) {
	for i, r := range k.rates {
		if !r.DryRun {
			k.rates[i], k.rates[live] = k.rates[live], r
			live++
		}
	}
	k.demands, k.stands = k.demands[:0], k.stands[:0]
	for _, r := range k.rates {
		k.demands = append(k.demands, ratelimit.Demand{Key: r.Key(c), Limit: r.Limit, Period: r.Period, Cost: q.Cost})
		k.stands = append(k.stands, ratelimit.Standing{})
	}
	if live > 0 {
		admitted, err := e.allow(ctx, k.demands[:live], k.stands[:live], q.Peek)
		if err != nil {
			return live, err
		}
		k.headers(live)
		if !admitted {
			k.Verdict = Count
			for _, s := range k.stands[:live] {
				k.RetryAfter = max(k.RetryAfter, time.Duration(s.Retry))
			}
			return live, nil
		}
	}
	for i := live; i < len(k.rates); i++ {
		admitted, err := e.allow(ctx, k.demands[i:i+1], k.stands[i:i+1], q.Peek)
		if err == nil && !admitted && !q.Peek {
			e.Tried.Add(1)
		}
	}
	return live, nil
}

// allow counts a request, or only reports whether it would be admitted.
func (e *Evaluator) allow(ctx context.Context, demands []ratelimit.Demand, stands []ratelimit.Standing,
	peek bool) (admitted bool, err error) {
	if !peek {
		return e.Limiter.Allow(ctx, demands, stands)
	}
	err, admitted = e.Limiter.Look(ctx, demands, stands), true
	for i, s := range stands {
		if s.Retry == 0 && s.Used+max(1, demands[i].Cost) > demands[i].Limit { // the owner knows no cost
			stands[i].Retry = s.Reset
		}
		admitted = admitted && stands[i].Retry == 0
	}
	return admitted, err
}

// headers describes the rates of a request to the client: what they allow, what remains, and the seconds until more
// is available, rounded up. That is when the oldest counted request leaves, or when the next one may come.
func (k *Ruling) headers(live int) {
	for i, rate := range k.rates[:live] {
		if i > 0 {
			k.Policy, k.State = append(k.Policy, ", "...), append(k.State, ", "...)
		}
		k.Policy, k.State = append(k.Policy, rate.policy...), append(k.State, rate.item...)
		s := k.stands[i]
		k.State = strconv.AppendInt(k.State, max(0, rate.Limit-s.Used), 10)
		k.State = append(k.State, ";t="...)
		k.State = strconv.AppendInt(k.State, seconds(time.Duration(max(s.Reset, s.Retry))), 10)
	}
}
