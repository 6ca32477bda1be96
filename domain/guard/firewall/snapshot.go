package firewall

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"castellan/domain/guard/ratelimit"
)

// Client is the known part of a request's client. It holds the address in normal form (not IPv4-mapped, without a
// zone), the user of a valid session and the country of the address. It also holds the name of a service client with
// a valid key.
type Client struct {
	IP      netip.Addr
	UserID  string
	Country string
	Service string
}

// Needs are the costly parts of a Client that some rule for a resource checks.
type Needs struct{ User, Service bool }

// Verdict is the decision of the rules for a request before any count.
type Verdict byte

// The verdicts. A request with Count is admitted when its rate limits admit it.
const (
	Allow Verdict = iota
	Deny
	Count
)

// Rate is a rate limit that counts requests.
type Rate struct {
	Label  string
	Limit  int64
	Period time.Duration
	DryRun bool

	until int64 // ms
	kind  EntityType
	any   bool // it is a limit of a service, whose entities are texts of any kind
	// policy and item are the start of its header values (D-WAF-10).
	policy, item string
}

// Key returns the counter of the rate for a client.
func (r *Rate) Key(c Client) ratelimit.Key {
	switch r.kind {
	case UserID:
		if r.any {
			return ratelimit.KeyOf(r.Label, c.UserID)
		}
		return ratelimit.Key{Rule: r.Label, Name: c.UserID}
	case CountryCode:
		return ratelimit.Key{Rule: r.Label, Name: c.Country}
	case AppID:
		return ratelimit.Key{Rule: r.Label, Name: c.Service}
	}
	return ratelimit.Key{Rule: r.Label, IP: rateAddr(c.IP)}
}

// rateAddr returns the address under which a client is counted.
func rateAddr(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	p, _ := a.Prefix(ratelimit.SubscriberBits) // of an address that is longer
	return p.Addr()
}

// The kinds of a deciding hit, in order of precedence.
const (
	forced = iota
	blocked
	listed
	kinds
)

var kindOf = map[Type]int{WhitelistForce: forced, Blacklist: blocked, Whitelist: listed}

const never = math.MaxInt64

// hit holds the rules for one entity: until when a rule of each kind targets it, in epoch ms, and the rates that
// count it.
type hit struct {
	until [kinds]int64
	rates []*Rate
}

// with returns h combined with the hits of the networks around it.
func (h *hit) with(around *hit) *hit {
	sum := *h
	for k := range sum.until {
		sum.until[k] = max(sum.until[k], around.until[k])
	}
	sum.rates = slices.Clone(h.rates)
	for _, r := range around.rates {
		if !slices.Contains(h.rates, r) {
			sum.rates = append(sum.rates, r)
		}
	}
	return &sum
}

// group holds all rules for one resource: those that name it, or those that target all.
type group struct {
	of         []int // its rules, as positions in Snapshot.rules
	forceUntil int64 // until when some rule allows only its targets
	needs      Needs
	all        [4]hit             // by kindIndex: rules that target all entities of a type
	named      [4]map[string]*hit // by kindIndex and entity, but for addresses
	ips        *networks
}

var kindIndex = map[EntityType]int{IP: 0, UserID: 1, CountryCode: 2, AppID: 3}

// Snapshot is the compiled rules of this application. It is immutable and safe for concurrent use.
type Snapshot struct {
	rules     []Rule         // all stored rules, for listing and explaining
	at        map[string]int // label → position in rules
	rates     []*Rate        // the rate limits among the rules, by position
	app       string
	always    *group
	resources map[string]*group
	limits    map[limitKey]*limit // of other services
	// trial also includes the blocking rules on trial; nil without any.
	trial *Snapshot
}

func (s *Snapshot) Rules() []Rule { return s.rules }

// hits holds the hits for one request: at most eight of each group.
type hits struct {
	list  [16]*hit
	n     int
	force bool
}

func (m *hits) take(h *hit) {
	if h != nil {
		m.list[m.n] = h
		m.n++
	}
}

func (m *hits) gather(g *group, c *Client, nowMs int64) {
	if g == nil {
		return
	}
	m.force = m.force || g.forceUntil > nowMs
	if c.IP.IsValid() {
		m.take(&g.all[0])
		m.take(g.ips.find(c.IP))
	}
	for kind, entity := range [...]string{1: c.UserID, 2: c.Country, 3: c.Service} {
		if entity != "" {
			m.take(&g.all[kind])
			m.take(g.named[kind][entity])
		}
	}
}

// of collects the hits of all rules for a request, and returns which kinds of rules target its client.
func (m *hits) of(s *Snapshot, resource string, c *Client, nowMs int64) (targeted [kinds]bool) {
	m.gather(s.always, c, nowMs)
	m.gather(s.resources[resource], c, nowMs)
	for _, h := range m.list[:m.n] {
		for k := range targeted {
			targeted[k] = targeted[k] || h.until[k] > nowMs
		}
	}
	return targeted
}

// Blacklisted reports whether a blacklist targets a client and no whitelist_force does.
func (s *Snapshot) Blacklisted(resource string, c Client, nowMs int64) bool {
	var m hits
	targeted := m.of(s, resource, &c, nowMs)
	return targeted[blocked] && !targeted[forced]
}

// Judge applies the precedence (D-WAF-05, 07, 15, 16); the first applicable rule decides. A whitelist_force allows
// its targets and blocks all others. Then a blacklist blocks its targets. Then a whitelist allows its targets without
// counting them. All other requests count under every rate that is appended to rates. No rule targets an unknown user
// or country.
func (s *Snapshot) Judge(resource string, c Client, nowMs int64, rates []*Rate) (Verdict, []*Rate) {
	var m hits
	targeted := m.of(s, resource, &c, nowMs)
	switch {
	case targeted[forced]:
		return Allow, rates
	case m.force, targeted[blocked]:
		return Deny, rates
	case targeted[listed]:
		return Allow, rates
	}
	return m.rates(nowMs, rates)
}

// rates appends the rates that count the request.
func (m *hits) rates(nowMs int64, rates []*Rate) (Verdict, []*Rate) {
	before := len(rates)
	for _, h := range m.list[:m.n] {
		for _, r := range h.rates {
			if r.until > nowMs {
				rates = append(rates, r)
			}
		}
	}
	if len(rates) == before {
		return Allow, rates
	}
	return Count, rates
}

// Needs returns the parts of a client that are needed to judge a request for the resource (D-GEN-19). A rule that
// expired since the rules were compiled still counts here.
func (s *Snapshot) Needs(resource string) (n Needs) {
	add := func(more Needs) { n.User, n.Service = n.User || more.User, n.Service || more.Service }
	if s.always != nil {
		add(s.always.needs)
	}
	if g := s.resources[resource]; g != nil {
		add(g.needs)
	}
	if s.trial != nil {
		add(s.trial.Needs(resource))
	}
	return n
}
