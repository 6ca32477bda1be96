// Package allowedip owns the networks from which an account may use certain endpoints (section 5 of the interface,
// accessFromIPsAllowedByUser; decision D-AUTH-09). No network means all. Operators maintain the list on the command
// line; it has no endpoint.
//
// The one idea: lists are few and short and change rarely. So a node holds all of them in a snapshot that is replaced
// as a whole, and checks a request without a database read.
//
// Start reading at Parse and Cache.
package allowedip

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// MaxNetworks bounds the list of one account.
const MaxNetworks = 1000

// Parse reads an address or a network in CIDR notation and returns its stored form: without host bits, IPv4 as IPv4.
// A bare address is the network of that address alone.
//
// Errors: INVALID_FIELD.
func Parse(s string) (netip.Prefix, error) {
	refuse := func() (netip.Prefix, error) {
		return netip.Prefix{}, fault.New(fault.InvalidField, "%q is neither an address nor a network such as 192.0.2.0/24", s)
	}
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return refuse()
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return refuse()
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return refuse()
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// Allow adds a network to an account's list; an existing one is unchanged.
type Allow struct {
	UserID  string
	Network netip.Prefix
	At      time.Time
}

func (Allow) Table() string { return "allowed_ip" }

// Disallow removes a network from an account's list; a missing one changes nothing.
type Disallow struct {
	UserID  string
	Network netip.Prefix
}

func (Disallow) Table() string { return "allowed_ip" }

// Change returns the writes that turn one list into another; none without a difference.
func Change(userID string, before, after []netip.Prefix, at time.Time) (writes []commit.Write) {
	for _, n := range before {
		if !slices.Contains(after, n) {
			writes = append(writes, Disallow{UserID: userID, Network: n})
		}
	}
	for _, n := range after {
		if !slices.Contains(before, n) {
			writes = append(writes, Allow{UserID: userID, Network: n, At: at})
		}
	}
	return writes
}

// Store reads the lists. Writes go through commit.Committer as the values
// above, with a note of topic change.AllowedIPs (see Change). It is safe for concurrent use.
type Store interface {
	// Networks lists the networks of an account in netip's order.
	Networks(ctx context.Context, userID string) ([]netip.Prefix, error)
	// All lists the networks of every account that has some.
	All(ctx context.Context) (map[string][]netip.Prefix, error)
}

// Cache is the node's snapshot: Reload reads all lists, and Follow those of the accounts in notes of topic
// change.AllowedIPs. It is safe for concurrent use.
type Cache struct {
	*change.Snapshot[map[string][]netip.Prefix] // by account
}

// NewCache returns a Cache over a store. It is empty until Reload.
func NewCache(s Store) *Cache {
	load := func(ctx context.Context) (*map[string][]netip.Prefix, error) {
		all, err := s.All(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload the allowed addresses: %w", err)
		}
		return &all, nil
	}
	type lists = map[string][]netip.Prefix
	apply := func(ctx context.Context, present *lists, ids []string) (*lists, error) {
		next := maps.Clone(*present)
		for _, id := range ids {
			networks, err := s.Networks(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("follow the allowed addresses of an account: %w", err)
			}
			if delete(next, id); len(networks) > 0 {
				next[id] = networks
			}
		}
		return &next, nil
	}
	return &Cache{change.NewSnapshot(&map[string][]netip.Prefix{}, load, apply)}
}

// Allows reports whether an account may be used from an address. An unknown address is on no list.
func (l *Cache) Allows(userID string, from netip.Addr) bool {
	networks := (*l.Current())[userID]
	return len(networks) == 0 || slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(from) })
}
