package ratelimit

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// SubscriberBits is the length of the IPv6 prefix that identifies a subscriber: the subscriber chooses the remaining
// bits (SEC-32).
const SubscriberBits = 64

// Key names a counter (D-WAF-04): a rate limit counts each entity separately, over all resources of the rule.
type Key struct {
	Rule string // label
	Name string // user or country
	IP   netip.Addr
}

// String returns the key as text, unique among the keys of one rule.
func (k Key) String() string {
	switch {
	case !k.IP.IsValid():
		return k.Name
	case k.IP.Is6():
		return netip.PrefixFrom(k.IP, SubscriberBits).String()
	}
	return k.IP.String()
}

// ID returns the identity of the key as a virtual actor: the escaped label and the entity (probe-ip/9.1.0.7).
func (k Key) ID() string { return url.PathEscape(k.Rule) + "/" + k.String() }

// ParseID parses an ID; false if it is none.
func ParseID(id string) (Key, bool) {
	label, entity, ok := strings.Cut(id, "/")
	label, err := url.PathUnescape(label)
	if !ok || err != nil || entity == "" {
		return Key{}, false
	}
	return KeyOf(label, entity), true
}

// KeyOf returns the key of a rule for an entity: an address, the /64 of a subscriber, a user, a country or a wider
// network.
func KeyOf(label, entity string) Key {
	if p, err := netip.ParsePrefix(entity); err == nil && p.Addr().Is6() && p.Bits() == SubscriberBits {
		return Key{Rule: label, IP: p.Masked().Addr()}
	}
	a, err := netip.ParseAddr(entity)
	if a = a.Unmap().WithZone(""); err != nil {
		return Key{Rule: label, Name: entity}
	}
	if a.Is6() {
		p, _ := a.Prefix(SubscriberBits) // of an address that is longer
		a = p.Addr()
	}
	return Key{Rule: label, IP: a}
}

// Demand is a request to count under a key.
type Demand struct {
	Key    Key
	Limit  int64
	Period time.Duration
	// Shared means that the wider key is demanded, too (see Sharing).
	Shared bool
	// Cost is how many admissions the request counts as, all or none; 0: one. In a cluster only actors/ratelimit.Costed
	// knows it.
	Cost int64
}

func (d Demand) Quota() Quota { return Quota{Limit: d.Limit, Period: int64(d.Period)} }

// Limiter keeps the windows of keys: a Table those of one node, and package actors/ratelimit those of a cluster. It
// is safe for concurrent use. It has its own clock, so callers with different delays cannot disagree about the time.
type Limiter interface {
	// Allow counts a request under every demand or, when one of them is at its limit, under none (D-WAF-06). It
	// stores the resulting state of each demand in standings, which is as long as demands. It keeps neither slice. The
	// demands have different keys.
	// It also admits nothing when a demand must be counted differently and none is at its limit; Standing.Sharing
	// says how, and Bounded does so.
	// UNAVAILABLE when it cannot decide, or when the client has gone (see WithClient); then nothing is counted.
	Allow(ctx context.Context, demands []Demand, standings []Standing) (admitted bool, err error)
	// Look stores the state of each demand in standings and counts nothing.
	Look(ctx context.Context, demands []Demand, standings []Standing) error
}

// Client reports whether the client of a request still waits for its answer. It may be called at any time while the
// request is served.
type Client interface{ Waits() bool }

type clientKey struct{}

// WithClient returns a context that carries the client of its request.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// Waits reports whether the client of a context still waits for the result.
func Waits(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	c, ok := ctx.Value(clientKey{}).(Client)
	return !ok || c.Waits()
}

// Counter is the state of a key, as an operator sees it.
type Counter struct {
	Label, Entity string
	Used, Limit   int64 // admissions
	Period        time.Duration
	Reset         time.Duration // until the oldest admission leaves
	Retry         time.Duration // until the next one; 0: now
	Node, Replica string        // members; Replica is "" if there is none
	Phase         string        // of the key's partition at Node
}

// CountersQuery selects counters.
type CountersQuery struct {
	Rules  []CountersRule
	Entity string  // "": all
	Least  float64 // the smallest used share of the limit, from 0 to 1
	Most   int     // at most this many
}

// CountersRule is the quota of a label.
type CountersRule struct {
	Label  string
	Limit  int64
	Period time.Duration
}

// Counters reads and resets the counters of all nodes. It is safe for concurrent use.
type Counters interface {
	// Fullest returns counters with an admission, fullest first, and the members that did not answer within 500 ms.
	Fullest(ctx context.Context, q CountersQuery) (all []Counter, silent []string)
	// Used returns how many admissions of a key count. UNAVAILABLE if its owner does not answer.
	Used(ctx context.Context, k Key) (int64, error)
	// Reset removes the admissions of a key and returns how many counted. Those that a node has reserved for the next
	// tenth of a second stay. The replica has the reset before the call returns. UNAVAILABLE if the owner or its
	// replica does not answer; the key may have been reset.
	Reset(ctx context.Context, k Key) (usedBefore int64, err error)
}
