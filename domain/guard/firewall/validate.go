package firewall

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/legible"
)

// Bounds of a rule: those of D-WAF-14, and our own where the interface has none.
const (
	MaxPeriodMs  = 31 * 86_400_000
	MaxLimit     = 1_000_000_000
	MaxInstantMs = 1<<53 - 1
	maxAppBytes  = 64
	maxLabel     = 200 // characters
	maxUserBytes = 128
	maxPath      = 2048 // bytes
)

// Canonical converts every value to the one spelling that is stored, compared and listed, and drops repeated values.
// A value without such a spelling is unchanged, and Check refuses it.
func (r *Rule) Canonical(known Resources) {
	for i, e := range r.Entities {
		if r.EntityType == IP {
			if p, single, err := parseIP(e); err == nil {
				r.Entities[i] = ipText(p, single)
			}
		}
	}
	for i, e := range r.Resources {
		if c, err := known.Canonical(e); err == nil {
			r.Resources[i] = c
		}
	}
	r.Entities, r.Resources = distinct(r.Entities), distinct(r.Resources)
}

// distinct keeps the order and the first of equal values; never nil.
func distinct(list []string) []string {
	out := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// Check validates the whole rule: INVALID_FIELD with every faulty field.
func (r Rule) Check() error {
	var ps []fault.Problem
	bad := func(field, format string, args ...any) {
		ps = append(ps, fault.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if r.AppID == "" || strings.TrimSpace(r.AppID) != r.AppID || len(r.AppID) > maxAppBytes || !printable(r.AppID) {
		bad("appId", "must be 1 to %d bytes of printable text", maxAppBytes)
	}
	if strings.TrimSpace(r.Label) == "" || utf8.RuneCountInString(r.Label) > maxLabel || !printable(r.Label) {
		bad("label", "must be 1 to %d printable characters", maxLabel)
	}
	if !slices.Contains([]Type{RateLimit, Whitelist, Blacklist, WhitelistForce}, r.Type) {
		bad("type", "must be rate_limit, whitelist, blacklist or whitelist_force")
	}
	for _, n := range []struct {
		field string
		value *int64
		most  int64
	}{{"period", r.PeriodMs, MaxPeriodMs}, {"limit", r.Limit, MaxLimit}} {
		switch {
		case n.value == nil && r.Type == RateLimit:
			bad(n.field, "is required for a rate_limit")
		case n.value != nil && (*n.value < 1 || *n.value > n.most):
			bad(n.field, "must be a whole number from 1 to %d", n.most)
		}
	}
	if r.ExpireAt < 0 || r.ExpireAt > MaxInstantMs {
		bad("expireAt", "must be an instant in epoch milliseconds; 0: never")
	}
	switch r.EntityType {
	case UserID, IP, CountryCode, AppID:
		for _, e := range r.Entities {
			if why := entityProblem(r.EntityType, e); why != "" {
				bad("targetEntities", "%q %s", shorten(e), why)
				break
			}
		}
	default:
		bad("targetEntityType", "must be USER_ID, IP, COUNTRY_CODE or APP_ID")
	}
	for _, e := range r.Resources {
		if _, err := (Resources{}).Canonical(e); err != nil {
			bad("targetResources", "%q %s", shorten(e), err)
			break
		}
		if !isLimit(e) {
			continue
		}
		if r.Type != RateLimit {
			bad("targetResources", "%q is only for a rate_limit", shorten(e))
			break
		}
		if clientkey.CheckName(r.AppID) != nil {
			bad("appId", "must be the name of a service client for a limit")
			break
		}
	}
	if r.Status != Active && r.Status != Inactive {
		bad("status", "must be ACTIVE or INACTIVE")
	}
	return fault.All(ps)
}

func entityProblem(t EntityType, e string) string {
	switch t {
	case IP:
		if _, _, err := parseIP(e); err != nil {
			return "is neither an IP address nor a network such as 192.0.2.0/24"
		}
	case CountryCode:
		if !geo.Assigned(e) {
			return "is not a country's code (ISO 3166-1 alpha-2, capital letters)"
		}
	case AppID:
		if clientkey.CheckName(e) != nil {
			return "is not the name of a service client"
		}
	case UserID:
		if strings.TrimSpace(e) == "" || len(e) > maxUserBytes || !printable(e) {
			return "is not a user id"
		}
	}
	return ""
}

// parseIP reads an address or a network and returns its normal form: IPv4 written as IPv6 becomes IPv4, without a
// zone, and a network starts at its first address. An address is a network of its full length, marked single.
func parseIP(s string) (p netip.Prefix, single bool, err error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return p, false, err
		}
		a = a.WithZone("").Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true, nil
	}
	if p, err = netip.ParsePrefix(s); err != nil {
		return p, false, err
	}
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	p = p.Masked()
	return p, p.Addr().Is4() && p.IsSingleIP(), nil
}

// ipText returns the text of an entity. A network of one IPv6 address keeps its length, so a rate limit does not
// count the whole /64 (D-WAF-08).
func ipText(p netip.Prefix, single bool) string {
	if single {
		return p.Addr().String()
	}
	return p.String()
}

func printable(s string) bool {
	return legible.Valid(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func shorten(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Change is a partial update of a rule (section 4.5 of the interface). A nil field is unchanged; a change without
// fields is allowed (D-WAF-14).
type Change struct {
	Label         string // of the rule
	Period, Limit Number
	ExpireAt      *int64
	Entities      *[]string
	Resources     *[]string
	AllEntities   *bool
	AllResources  *bool
	Status        *Status
	DryRun        *bool
}

// Number is the new value of a nullable field; nil clears the field.
type Number struct {
	Sent  bool
	Value *int64
}

// Apply returns the changed rule after checking all of it. INVALID_FIELD when it is not valid, including a rate limit
// without one of its numbers.
func (c Change) Apply(r Rule, known Resources) (Rule, error) {
	before := r
	if c.Period.Sent {
		r.PeriodMs = c.Period.Value
	}
	if c.Limit.Sent {
		r.Limit = c.Limit.Value
	}
	set(&r.ExpireAt, c.ExpireAt)
	set(&r.AllEntities, c.AllEntities)
	set(&r.AllResources, c.AllResources)
	set(&r.Status, c.Status)
	set(&r.DryRun, c.DryRun)
	set(&r.Entities, c.Entities)
	set(&r.Resources, c.Resources)
	r.Entities, r.Resources = slices.Clone(r.Entities), slices.Clone(r.Resources)
	r.Canonical(known)
	return r, fault.Since(before.Check(), r.Check(), map[string]bool{"period": c.Period.Sent, "limit": c.Limit.Sent,
		"expireAt": c.ExpireAt != nil, "targetEntities": !slices.Equal(r.Entities, before.Entities),
		"targetResources": !slices.Equal(r.Resources, before.Resources), "status": c.Status != nil})
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
