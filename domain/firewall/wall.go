package firewall

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/window"
)

// Wall judges requests: by the snapshot of the rules, and, where that says so,
// by the counters.
type Wall struct {
	Rules   func() *Snapshot
	Counter Counter
	// Bypass are the networks that no rule applies to (D-WAF-12).
	Bypass []netip.Prefix
	Now    func() time.Time

	// What became of requests, for the metrics. Tried are those that only a rule
	// on trial would have refused.
	Denied, Limited, Tried atomic.Int64

	pool sync.Pool
}

// Ruling is what becomes of a request.
type Ruling struct {
	// Verdict is Allow, Deny, or Count where a rate limit refuses the request.
	Verdict Verdict
	// RetryAfter is how long a rate limit refuses.
	RetryAfter time.Duration
	// Policy and State are the values of the headers RateLimit-Policy and
	// RateLimit; "" where no rate limit applied (D-WAF-10).
	Policy, State string
}

// work is the scratch of one decision.
type work struct {
	rates   []*Rate
	demands []Demand
	stands  []window.Standing
	text    []byte
}

// NeedsUser tells whether the user decides about a request for the resource.
func (w *Wall) NeedsUser(resource string) bool {
	return w.Rules().NeedsUser(resource, w.Now().UnixMilli())
}

// Bypassed tells whether no rule applies to an address.
func (w *Wall) Bypassed(ip netip.Addr) bool {
	for _, p := range w.Bypass {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// Check judges a request and counts it where it is to be counted. Its error is
// the counter's.
func (w *Wall) Check(ctx context.Context, resource string, c Client) (Ruling, error) {
	if w.Bypassed(c.IP) {
		return Ruling{}, nil
	}
	s, nowMs := w.Rules(), w.Now().UnixMilli()
	k, _ := w.pool.Get().(*work)
	if k == nil {
		k = new(work)
	}
	defer func() {
		clear(k.rates)
		clear(k.demands)
		w.pool.Put(k)
	}()
	var verdict Verdict
	verdict, k.rates = s.Judge(resource, c, nowMs, k.rates[:0])
	if verdict != Deny && s.trial != nil {
		if would, _ := s.trial.Judge(resource, c, nowMs, nil); would == Deny {
			w.Tried.Add(1)
		}
	}
	switch verdict {
	case Deny:
		w.Denied.Add(1)
		return Ruling{Verdict: Deny}, nil
	case Allow:
		return Ruling{}, nil
	}
	return w.count(ctx, k, c)
}

// count asks the counters. Rules on trial are counted after the others, each by
// itself, so that they change nothing.
func (w *Wall) count(ctx context.Context, k *work, c Client) (ruling Ruling, err error) {
	live := 0
	for i, r := range k.rates {
		if !r.DryRun {
			k.rates[i], k.rates[live] = k.rates[live], r
			live++
		}
	}
	k.demands, k.stands = k.demands[:0], k.stands[:0]
	for _, r := range k.rates {
		k.demands = append(k.demands, Demand{r.Key(c), r.Limit, r.Period})
		k.stands = append(k.stands, window.Standing{})
	}
	if live > 0 {
		admitted, err := w.Counter.Allow(ctx, k.demands[:live], k.stands[:live])
		if err != nil {
			return ruling, err
		}
		k.headers(&ruling, live)
		if !admitted {
			w.Limited.Add(1)
			ruling.Verdict = Count
			for _, s := range k.stands[:live] {
				ruling.RetryAfter = max(ruling.RetryAfter, time.Duration(s.Retry))
			}
			return ruling, nil
		}
	}
	for i := live; i < len(k.rates); i++ {
		admitted, err := w.Counter.Allow(ctx, k.demands[i:i+1], k.stands[i:i+1])
		if err == nil && !admitted {
			w.Tried.Add(1)
		}
	}
	return ruling, nil
}

// headers tells the client of the rates it was counted under: what they allow,
// what is left, and in how many seconds, rounded up, there will be more: when
// the oldest counted request leaves, or when the next one may come.
func (k *work) headers(r *Ruling, live int) {
	k.text = k.text[:0]
	for i, rate := range k.rates[:live] {
		if i > 0 {
			k.text = append(k.text, ", "...)
		}
		s := k.stands[i]
		k.text = append(k.text, rate.item...)
		k.text = strconv.AppendInt(k.text, max(0, rate.Limit-s.Used), 10)
		k.text = append(k.text, ";t="...)
		k.text = strconv.AppendInt(k.text, seconds(time.Duration(max(s.Reset, s.Retry))), 10)
	}
	r.State = string(k.text)
	if live == 1 {
		r.Policy = k.rates[0].policy
		return
	}
	k.text = k.text[:0]
	for i, rate := range k.rates[:live] {
		if i > 0 {
			k.text = append(k.text, ", "...)
		}
		k.text = append(k.text, rate.policy...)
	}
	r.Policy = string(k.text)
}
