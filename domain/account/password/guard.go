package password

import (
	"cmp"
	"slices"
	"time"

	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
)

// GuardRules are the numbers of the wrong-password guard (D-GEN-14).
type GuardRules struct {
	PerPrefix int           // wrong tries for an account from one prefix …
	Window    time.Duration // … in this rolling window
	Total     int           // wrong tries from anywhere …
	TotalSpan time.Duration // … in this one, after which only known prefixes may try
	// PerRegion is how many tries of one region (client.Region) count toward the total. After them the unknown
	// prefixes of the region may not try. 0 means no bound. A client with a whole block of addresses thus cannot
	// close an account for all others.
	PerRegion int
	GoodFor   time.Duration // how long a prefix is known after a good login
	Keep      int           // tries that a row remembers at most; 0: 400
	Wait      time.Duration // how long a try waits for those before it; 0: 10 s
}

// Limit returns the rules of a guard that counts one thing for one key: at most n in a rolling window.
func Limit(n int, window time.Duration) GuardRules {
	return GuardRules{PerPrefix: n, Window: window, Total: n, TotalSpan: window, Keep: n}
}

// DefaultGuardRules are 10 in 15 minutes, 100 in 24 hours, 20 of them from one region,
// and 30 days.
func DefaultGuardRules() GuardRules {
	return GuardRules{PerPrefix: 10, Window: 15 * time.Minute, Total: 100, TotalSpan: 24 * time.Hour, PerRegion: 20,
		GoodFor: 30 * 24 * time.Hour}
}

// Bounds of a row. Beyond them the oldest entry is forgotten. By then a try is followed by more tries than any rule
// needs, and a prefix by dozens of later ones.
const (
	maxTries = 400
	maxGood  = 32
)

// Guard holds the remembered tries for one account, or for the keyed hash of an identifier without an account.
// Strangers do not lock the owner out. Tries count against the prefix they come from. When tries from many places
// made the account refuse, the prefixes of earlier logins may still log in.
type Guard struct {
	Key     string
	Version int64  // of its row; 0: there is none yet
	Tries   []Try  // oldest first
	Good    []Good // oldest first, one per prefix
}

// Try is a wrong try, or one that is not judged yet.
type Try struct {
	At     int64  `json:"t"` // ms
	Prefix string `json:"p"`
}

// Good is a prefix that logged in with the right password.
type Good struct {
	Prefix string `json:"p"`
	At     int64  `json:"t"` // ms, of the last time
}

// Charge counts a try as wrong before it is judged.
//
// Errors: RATE_LIMITED with the time to wait, when the prefix has used up its tries. For an unknown prefix its region
// and the account count, too. After an error the guard is unchanged.
func (g Guard) Charge(now time.Time, r GuardRules, prefix string) (Guard, error) {
	if wait := g.wait(now, r, prefix); wait > 0 {
		return g, fault.New(fault.RateLimited, "too many wrong passwords; try later").After(wait)
	}
	g = g.pruned(now, r)
	g.Tries = append(g.Tries, Try{now.UnixMilli(), prefix})
	if n, keep := len(g.Tries), cmp.Or(r.Keep, maxTries); n > keep {
		g.Tries = g.Tries[n-keep:]
	}
	return g, nil
}

// Refund takes back the charge of a right try and makes its prefix known.
func (g Guard) Refund(now time.Time, r GuardRules, prefix string) Guard {
	g = g.Return(prefix).pruned(now, r)
	g.Good = slices.DeleteFunc(g.Good, func(k Good) bool { return k.Prefix == prefix }) // pruned made it ours
	g.Good = append(g.Good, Good{prefix, now.UnixMilli()})
	if n := len(g.Good); n > maxGood {
		g.Good = g.Good[n-maxGood:]
	}
	return g
}

// Return takes back the charge of a try that was never judged.
func (g Guard) Return(prefix string) Guard {
	for i, t := range slices.Backward(g.Tries) {
		if t.Prefix == prefix {
			g.Tries = slices.Delete(slices.Clone(g.Tries), i, i+1)
			break
		}
	}
	return g
}

// Until returns when the guard can be forgotten: from then on it refuses nothing.
func (g Guard) Until(r GuardRules) time.Time {
	var last int64
	for _, t := range g.Tries {
		last = max(last, t.At+r.TotalSpan.Milliseconds())
	}
	for _, k := range g.Good {
		last = max(last, k.At+r.GoodFor.Milliseconds())
	}
	return time.UnixMilli(last)
}

// Standing is the state of a prefix toward an account.
type Standing struct {
	Tries       int       // charged from the prefix in the current window
	Limit       int       // of Tries; further bounds may refuse earlier
	LockedUntil time.Time // when the prefix may try again; zero if it may try now
}

func (g Guard) standing(now time.Time, r GuardRules, prefix string) Standing {
	s := Standing{Limit: r.PerPrefix}
	for _, t := range g.Tries {
		if t.Prefix == prefix && now.UnixMilli()-t.At < r.Window.Milliseconds() {
			s.Tries++
		}
	}
	if wait := g.wait(now, r, prefix); wait > 0 {
		s.LockedUntil = now.Add(wait)
	}
	return s
}

func (g Guard) wait(now time.Time, r GuardRules, prefix string) time.Duration {
	var here []int64
	for _, t := range g.Tries {
		if t.Prefix == prefix {
			here = append(here, t.At)
		}
	}
	wait := rolling(now, here, r.PerPrefix, r.Window)
	if len(g.Tries) < min(r.Total, cmp.Or(r.PerRegion, r.Total)) || g.Knows(now, r, prefix) {
		return wait // neither the total nor a region can be used up
	}
	region := ""
	if r.PerRegion > 0 {
		region = client.Region(prefix)
	}
	all, ofRegion := g.counted(r, region)
	if r.PerRegion > 0 {
		wait = max(wait, rolling(now, ofRegion, r.PerRegion, r.TotalSpan))
	}
	return max(wait, rolling(now, all, r.Total, r.TotalSpan))
}

// counted returns the instants that count toward the total, and those of a region.
func (g Guard) counted(r GuardRules, region string) (all, ofRegion []int64) {
	regions := map[string]int{}
	for _, t := range slices.Backward(g.Tries) { // the newest tries of a region count
		if r.PerRegion == 0 {
			all = append(all, t.At)
			continue
		}
		from := client.Region(t.Prefix)
		if from == region {
			ofRegion = append(ofRegion, t.At)
		}
		if regions[from]++; regions[from] <= r.PerRegion {
			all = append(all, t.At)
		}
	}
	return all, ofRegion
}

// Closed reports whether only known prefixes may try: the tries from anywhere are used up.
func (g Guard) Closed(now time.Time, r GuardRules) bool {
	if len(g.Tries) < r.Total {
		return false
	}
	all, _ := g.counted(r, "")
	return rolling(now, all, r.Total, r.TotalSpan) > 0
}

// rolling returns the time until fewer than limit of the instants are younger than the window. An instant ahead of
// now, by the clock of another node, counts as now.
func rolling(now time.Time, times []int64, limit int, window time.Duration) time.Duration {
	if len(times) < limit {
		return 0
	}
	// Nodes append by their own clocks, so the order may differ by their skew.
	slices.Sort(times)
	oldest := times[len(times)-limit] // of the newest limit
	left := time.Duration(oldest+window.Milliseconds()-now.UnixMilli()) * time.Millisecond
	return min(max(left, 0), window)
}

// Knows reports whether the right password came from a prefix within GoodFor.
func (g Guard) Knows(now time.Time, r GuardRules, prefix string) bool {
	return slices.ContainsFunc(g.Good, func(k Good) bool {
		return k.Prefix == prefix && now.UnixMilli()-k.At < r.GoodFor.Milliseconds()
	})
}

// pruned returns a copy without the entries that no longer count.
func (g Guard) pruned(now time.Time, r GuardRules) Guard {
	ms := now.UnixMilli()
	g.Tries = slices.DeleteFunc(slices.Clone(g.Tries), func(t Try) bool { return ms-t.At >= r.TotalSpan.Milliseconds() })
	g.Good = slices.DeleteFunc(slices.Clone(g.Good), func(k Good) bool { return ms-k.At >= r.GoodFor.Milliseconds() })
	if r.PerRegion == 0 || len(g.Tries) <= r.Total {
		return g
	}
	// A region with more tries than count must not displace those of others.
	regions, kept := map[string]int{}, g.Tries[:0:0]
	for _, t := range slices.Backward(g.Tries) {
		from := client.Region(t.Prefix)
		if regions[from]++; regions[from] <= r.PerRegion || ms-t.At < r.Window.Milliseconds() {
			kept = append(kept, t)
		}
	}
	slices.Reverse(kept)
	g.Tries = kept
	return g
}
