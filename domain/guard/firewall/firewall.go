// Package firewall is the request firewall (sections 2.3, 3.3 and 4.5 of the interface): rules that allow, block and
// limit, and their decision for one request.
//
// The one idea: rules are compiled into an immutable snapshot. A request looks up its resource, its address, its user
// and its country there, once each. It takes no lock, allocates nothing, and costs the same with ten rules and with
// ten thousand. Package domain/guard/ratelimit counts: a rule names a key, and a Limiter counts under it.
//
// Start reading at Rule, then Compile and Snapshot.Judge (the precedence), Evaluator (a request from end to end) and
// Admin (the writes).
package firewall

// Type is the effect of a rule, in the words of the interface.
type Type string

// The types, in order of precedence (REQ-WAF-09).
const (
	WhitelistForce Type = "whitelist_force" // allows its targets and blocks all others
	Blacklist      Type = "blacklist"       // blocks
	Whitelist      Type = "whitelist"       // allows without rate limits; blocks no client (D-WAF-15)
	RateLimit      Type = "rate_limit"
)

// EntityType is the kind of a rule's entities.
type EntityType string

// The types of entities.
const (
	UserID      EntityType = "USER_ID"
	IP          EntityType = "IP"
	CountryCode EntityType = "COUNTRY_CODE"
	AppID       EntityType = "APP_ID" // name of a service client (D-INT-01)
)

// Status is the status of a rule (section 3.3 of the interface).
type Status string

// The values of Status.
const (
	Active   Status = "ACTIVE"
	Inactive Status = "INACTIVE"
)

// DefaultApp is the appId of rules without one (D-WAF-01).
const DefaultApp = "API"

// Rule is one firewall rule. A valid one passes Check.
type Rule struct {
	AppID string
	Label string `audit:"-"` // the target; unique over all applications (D-WAF-09)
	Type  Type
	// PeriodMs and Limit are required by a rate limit; other rules store the sent values.
	PeriodMs, Limit *int64
	ExpireAt        int64 // epoch ms; 0: never
	EntityType      EntityType
	// Entities are user ids, addresses and networks, country codes, or names of service clients, in the spelling of
	// Canonical.
	Entities []string
	// Resources are "<METHOD> <path>" as Resources.Canonical spells them.
	Resources []string
	// AllEntities targets all entities of the type. AllResources targets all paths, served or not. Each takes
	// precedence over its list.
	AllEntities, AllResources bool
	Status                    Status
	// DryRun is an extension of the interface: the rule counts and reports, and refuses nothing.
	DryRun bool
}

// Expired reports whether the rule has ended; it has no effect from that millisecond.
func (r Rule) Expired(nowMs int64) bool { return r.ExpireAt != 0 && nowMs >= r.ExpireAt }
