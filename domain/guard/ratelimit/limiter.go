package ratelimit

import (
	"context"
	"net/netip"
	"time"
)

// SubscriberBits is the length of the IPv6 prefix that names a subscriber: what
// follows is the subscriber's own choice (SEC-32).
const SubscriberBits = 64

// Key names a counter (D-WAF-04): a rate limit counts each entity by itself, over
// all resources of the rule.
type Key struct {
	Rule string // label
	Name string // user or country
	IP   netip.Addr
}

// String is the key as text, different for different keys of one rule.
func (k Key) String() string {
	switch {
	case !k.IP.IsValid():
		return k.Name
	case k.IP.Is6():
		return netip.PrefixFrom(k.IP, SubscriberBits).String()
	}
	return k.IP.String()
}

// Demand is that a request be counted under a key.
type Demand struct {
	Key    Key
	Limit  int64
	Period time.Duration
	// Shared: the wider key is demanded, too (see Sharing).
	Shared bool
}

func (d Demand) quota() Quota { return Quota{Limit: d.Limit, Period: int64(d.Period)} }

// Limiter keeps the windows of keys: a Table those of one node, and package
// actors/ratelimit those of a cluster. It is safe for concurrent use. It has its own
// clock, so that callers whose requests take different time to reach it cannot
// disagree about the time.
type Limiter interface {
	// Allow counts a request under every demand, or, when one of them is at its
	// limit, under none (D-WAF-06). It fills in how each stands then: stands is as
	// long as demands, and neither is kept. The demands have different keys.
	// It also admits nothing when a demand is to be counted otherwise and none is at its
	// limit; its Standing.Sharing says how, and Bounded does so.
	// UNAVAILABLE when it cannot tell, or when nobody waits any more (see WithClient);
	// then nothing is counted.
	Allow(ctx context.Context, demands []Demand, stands []Standing) (admitted bool, err error)
	// Look fills in how each demand stands and counts nothing.
	Look(ctx context.Context, demands []Demand, stands []Standing) error
}

// Client reports whether the client of a request still waits for its answer. It is asked
// at any time while the request is served.
type Client interface{ Waits() bool }

type clientKey struct{}

// WithClient returns a context that knows the client of its request.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// Waits reports whether anybody waits for what is done under a context.
func Waits(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	c, ok := ctx.Value(clientKey{}).(Client)
	return !ok || c.Waits()
}
