package ratelimit

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A rule has as many keys as it has clients, and a stranger can have more IPv6 networks than a node has memory. So a
// Table keeps a bounded number of keys of a rule. A key that it keeps stays exact. A client without a key is counted
// under a wider one, with its neighbours (Bounded does so).
//
// The limit is never exceeded, even while keys become free again. While an admission under the wider key alone may
// still count, a new key is counted together with the wider one.

// Sharing is how a key is counted that a Table does not keep.
type Sharing uint8

// The ways of counting.
const (
	Alone    Sharing = iota // by itself
	Together                // also under the wider key
	Instead                 // under the wider key only
)

// shareSlack is the longest delay until a request counts under the wider key.
const shareSlack = 5 * time.Second

// class is a group of keys of one width with its own bound. So strangers with many IPv6 networks take no room from
// IPv4.
type class uint8

const (
	exact4 class = iota
	exact6
	names
	wide            // this and the following: addresses that share, by width
	rest = wide + 5 // keys of which there are few
)

// widths are the prefixes under which clients share a key, the narrow ones first.
var widths4, widths6 = [...]int{24, 16}, [...]int{56, 48, 32}

const (
	// mark is the first character of names that no user and no country has.
	mark = "~"
	// catchAll is the key of all clients without any other key.
	catchAll = mark
	// bucketLetters is the number of hash characters in a shared key of users or countries.
	bucketLetters = 3
)

// prefix returns the network that a key counts; not valid for a user or a country.
func (k Key) prefix() netip.Prefix {
	switch {
	case k.IP.Is4():
		return netip.PrefixFrom(k.IP, 32)
	case k.IP.Is6():
		return netip.PrefixFrom(k.IP, SubscriberBits)
	case !strings.Contains(k.Name, "/"):
		return netip.Prefix{}
	}
	p, _ := netip.ParsePrefix(k.Name) // not valid for a user
	return p
}

func (k Key) class() class {
	p := k.prefix()
	switch {
	case strings.HasPrefix(k.Name, mark):
		return rest
	case !p.IsValid():
		return names
	}
	exact, first := exact6, wide+class(len(widths4))
	if p.Addr().Is4() {
		exact, first = exact4, wide
	}
	widths := widthsOf(p.Addr())
	for i := len(widths) - 1; i >= 0; i-- {
		if p.Bits() <= widths[i] {
			return first + class(i)
		}
	}
	return exact
}

func widthsOf(a netip.Addr) []int {
	if a.Is4() {
		return widths4[:]
	}
	return widths6[:]
}

// wider returns the key for a client without its own key. hash distributes names that are not addresses, so a client
// cannot choose its neighbours.
func (k Key) wider(hash func(string) string) Key {
	p := k.prefix()
	if !p.IsValid() {
		return Key{Rule: k.Rule, Name: mark + hash(k.Rule + "\n" + k.Name)[:bucketLetters]}
	}
	for _, bits := range widthsOf(p.Addr()) {
		if bits < p.Bits() {
			p, _ = p.Addr().Prefix(bits) // of an address that is longer
			return Key{Rule: k.Rule, Name: p.String()}
		}
	}
	return Key{Rule: k.Rule, Name: catchAll}
}

// Tally counts the keys of each rule. The zero value has no bound. It is safe for concurrent use.
type Tally struct {
	most  int64
	rules sync.Map // label → *[rest + 1]tally
}

// tally counts the keys of one width.
type tally struct {
	keys atomic.Int64
	// full is when a client last had to share, plus one; 0: never.
	full atomic.Int64
}

// Bound sets how many keys of a rule are kept. The bound applies to IPv4 addresses, IPv6 subscribers and other keys
// separately; each width of shared keys has a quarter more. 0 means no bound. Call it before the first key is
// counted.
func (t *Tally) Bound(most int) { t.most = int64(most) }

func (t *Tally) of(k Key) (*tally, class) {
	all, known := t.rules.Load(k.Rule)
	if !known {
		all, _ = t.rules.LoadOrStore(strings.Clone(k.Rule), new([rest + 1]tally))
	}
	c := k.class()
	return &all.(*[rest + 1]tally)[c], c
}

// Add records that n more keys like k are kept; n may be negative.
func (t *Tally) Add(k Key, n int64) {
	if t.most > 0 {
		at, _ := t.of(k)
		at.keys.Add(n)
	}
}

// Full reports whether no further key like this one is kept.
func (t *Tally) Full(k Key) bool {
	if t.most <= 0 {
		return false
	}
	at, c := t.of(k)
	return at.isFull(c, t.most)
}

func (at *tally) isFull(c class, most int64) bool {
	switch {
	case c == rest:
		return false
	case c >= wide:
		most = (most + 3) / 4
	}
	return at.keys.Load() >= most
}

// sharing returns how to count a demand with this window, or with none. A client with such an answer counts from now
// on, unless it only looks.
func (t *Tally) sharing(w *Window, d *Demand, now int64, looks bool) Sharing {
	switch {
	case t.most <= 0 || d.Shared && w != nil:
		return Alone
	case w != nil && w.sharedUntil <= now:
		return Alone
	case w != nil:
		return Together
	}
	at, c := t.of(d.Key)
	if at.isFull(c, t.most) {
		if !looks {
			at.full.Store(now + 1)
		}
		return Instead
	}
	if full := at.full.Load(); !d.Shared && full != 0 && now < full+int64(d.Period+shareSlack) {
		return Together
	}
	return Alone
}

// ShareFor makes a new window count together with the wider key for a period. After it, admissions under the wider
// key alone have left the window.
func (w *Window) ShareFor(now int64, period time.Duration) {
	w.sharedUntil = now + int64(period+shareSlack)
}

// SharedAt reports whether the window is counted together with the wider key.
func (w *Window) SharedAt(now int64) bool { return w.sharedUntil > now }
