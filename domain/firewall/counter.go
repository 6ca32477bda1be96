package firewall

import (
	"context"
	"net/netip"
	"time"

	"castellan/domain/window"
)

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
		return netip.PrefixFrom(k.IP, rateBits).String()
	}
	return k.IP.String()
}

// Demand is that a request be counted under a key.
type Demand struct {
	Key    Key
	Limit  int64
	Period time.Duration
}

func (d Demand) rule() window.Rule { return window.Rule{Limit: d.Limit, Period: int64(d.Period)} }

// Counter keeps the windows of keys, wherever they live. It is safe for
// concurrent use. Its clock is its own, so that requests which reach it by ways
// of different length cannot disagree about the time.
type Counter interface {
	// Allow counts a request under every demand, or, when one of them is at its
	// limit, under none (D-WAF-06). It fills in how each stands then: stands is as
	// long as demands, and neither is kept. The demands have different keys.
	// UNAVAILABLE when it cannot tell.
	Allow(ctx context.Context, demands []Demand, stands []window.Standing) (admitted bool, err error)
	// Look fills in how each demand stands and counts nothing.
	Look(ctx context.Context, demands []Demand, stands []window.Standing) error
}
