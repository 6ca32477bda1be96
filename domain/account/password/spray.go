package password

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
)

// Spray bounds the wrong passwords of a site over all accounts (D-GEN-14), so that one host cannot try a few
// passwords on every account.
//
// The one idea: only wrong passwords count, in the windows of the rate limits, which all nodes share. The answer says
// when the site has used up its tries, and this node remembers it. So a login looks into a map that is usually empty.
// A node learns of the counts of other nodes at its next wrong try of the site. Until then it admits one try more,
// and those being judged at that moment. It is safe for concurrent use.
type Spray struct {
	windows ratelimit.Limiter
	limit   int64
	exempt  []netip.Prefix
	now     func() time.Time

	mu     sync.RWMutex
	closed map[string]time.Time // by site: closed until
}

// sprayWindow is the window of the bound. sprayRule is its name among the keys of the rate limits: the label of a
// firewall rule never contains a line break.
const (
	sprayWindow = 10 * time.Minute
	sprayRule   = "wrong passwords\n"
)

// NewSpray returns the bound of limit wrong passwords in ten minutes. Addresses in exempt have no bound.
func NewSpray(windows ratelimit.Limiter, limit int, exempt []netip.Prefix, now func() time.Time) *Spray {
	return &Spray{windows: windows, limit: int64(limit), exempt: exempt, now: now, closed: map[string]time.Time{}}
}

// Wrong counts a wrong password. It counts nothing while the windows are unavailable.
func (s *Spray) Wrong(ctx context.Context, from client.Origin) {
	site := from.Site
	if site == "" || slices.ContainsFunc(s.exempt, func(p netip.Prefix) bool { return p.Contains(from.Addr.Unmap()) }) {
		return
	}
	demand := [1]ratelimit.Demand{{Key: ratelimit.Key{Rule: sprayRule, Name: site}, Limit: s.limit, Period: sprayWindow}}
	var stands [1]ratelimit.Standing
	counted, err := s.windows.Allow(ctx, demand[:], stands[:])
	until := time.Duration(stands[0].Retry)
	switch {
	case err != nil || counted && stands[0].Used < s.limit:
		return
	case counted: // the last one: the next may come when the oldest leaves
		until = time.Duration(stands[0].Reset)
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, until := range s.closed { // few: each has used up its tries within the window
		if !until.After(now) {
			delete(s.closed, k)
		}
	}
	s.closed[site] = now.Add(until)
}

// Judge refuses a try for an account that does not know the prefix of the address, while the site may not try. Known
// callers pass, so a neighbour on the site does not lock them out.
//
// Errors: RATE_LIMITED.
func (s *Spray) Judge(guard Guard, r GuardRules, from client.Origin) error {
	s.mu.RLock()
	until := s.closed[from.Site] // usually the map is empty
	s.mu.RUnlock()
	wait := until.Sub(s.now())
	if wait <= 0 || guard.Knows(s.now(), r, from.Prefix) {
		return nil
	}
	return fault.New(fault.RateLimited, "too many wrong passwords; try later").After(wait)
}
