package firewall

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/ratelimit"
)

// Compile makes the snapshot of an application (D-WAF-01) out of all rules. What
// has no effect now and never will is left out: inactive and expired rules, and
// those that target nothing.
func Compile(rules []Rule, app string, nowMs int64) *Snapshot {
	s := &Snapshot{rules: rules, app: app}
	rates := map[string]*Rate{}
	for i := range rules {
		if r := &rules[i]; r.Type == RateLimit && r.PeriodMs != nil && r.Limit != nil {
			rates[r.Label] = newRate(r)
		}
	}
	trial := s.build(rates, nowMs, false)
	if trial {
		s.trial = &Snapshot{app: app, rules: rules}
		s.trial.build(rates, nowMs, true)
	}
	return s
}

// build groups the rules by what they apply to. It tells whether there is a rule
// that decides and is only tried out; those are left out unless dry is true.
func (s *Snapshot) build(rates map[string]*Rate, nowMs int64, dry bool) (tried bool) {
	var always []int
	by := map[string][]int{}
	for i, r := range s.rules {
		if r.AppID != s.app || r.Status != Active || r.Expired(nowMs) {
			continue
		}
		if r.DryRun && r.Type != RateLimit {
			tried = true
			if !dry {
				continue
			}
		}
		if r.AllResources {
			always = append(always, i)
			continue
		}
		for _, resource := range r.Resources {
			by[resource] = append(by[resource], i)
		}
	}
	if len(always) > 0 {
		s.always = s.group(always, rates)
	}
	s.resources = make(map[string]*group, len(by))
	// Resources under the same rules, such as all that one rule lists, share what
	// is compiled of them.
	made := map[string]*group{}
	for resource, is := range by {
		is = slices.Compact(is)
		var id strings.Builder
		for _, i := range is {
			id.WriteString(strconv.Itoa(i))
			id.WriteByte(' ')
		}
		g := made[id.String()]
		if g == nil {
			g = s.group(is, rates)
			made[id.String()] = g
		}
		s.resources[resource] = g
	}
	return tried
}

func (s *Snapshot) group(is []int, rates map[string]*Rate) *group {
	g := &group{users: map[string]*hit{}, countries: map[string]*hit{}}
	ips := map[netip.Prefix]*hit{}
	for _, i := range is {
		r := &s.rules[i]
		until := end(r)
		g.needsUser = g.needsUser || r.EntityType == UserID
		if r.Type == WhitelistForce {
			g.forceUntil = max(g.forceUntil, until)
		}
		if r.AllEntities {
			note(&g.all[kindIndex[r.EntityType]], r, until, rates)
			continue
		}
		for _, e := range r.Entities {
			switch r.EntityType {
			case UserID:
				note(at(g.users, e), r, until, rates)
			case CountryCode:
				note(at(g.countries, e), r, until, rates)
			case IP:
				if p, ok := target(r, e); ok {
					note(at(ips, p), r, until, rates)
				}
			}
		}
	}
	g.ips = newNetworks(ips)
	return g
}

// target is the network that an entity of a rule stands for. A single IPv6
// address counts with its /64 (D-WAF-08); to let in or keep out it is that
// address alone.
func target(r *Rule, entity string) (netip.Prefix, bool) {
	p, single, err := parseIP(entity)
	if err != nil {
		return p, false
	}
	if r.Type == RateLimit && single && p.Addr().Is6() {
		p = netip.PrefixFrom(p.Addr(), ratelimit.SubscriberBits).Masked()
	}
	return p, true
}

func end(r *Rule) int64 {
	if r.ExpireAt == 0 {
		return never
	}
	return r.ExpireAt
}

func at[K comparable](m map[K]*hit, key K) *hit {
	h := m[key]
	if h == nil {
		h = new(hit)
		m[key] = h
	}
	return h
}

func note(h *hit, r *Rule, until int64, rates map[string]*Rate) {
	if k, decides := kindOf[r.Type]; decides {
		h.until[k] = max(h.until[k], until)
		return
	}
	// One rule may name an entity twice, as two addresses of one /64.
	if rate := rates[r.Label]; rate != nil && (len(h.rates) == 0 || h.rates[len(h.rates)-1] != rate) {
		h.rates = append(h.rates, rate)
	}
}

func newRate(r *Rule) *Rate {
	name := quoted(r.Label)
	period := time.Duration(*r.PeriodMs) * time.Millisecond
	return &Rate{Label: r.Label, Limit: *r.Limit, Period: period, DryRun: r.DryRun, until: end(r), kind: r.EntityType,
		policy: name + ";q=" + strconv.FormatInt(*r.Limit, 10) + ";w=" + strconv.FormatInt(seconds(period), 10), item: name + ";r="}
}

// quoted is a label as a string of a structured field (RFC 9651), which is
// ASCII; any other label appears by its hash (D-WAF-10).
func quoted(label string) string {
	for i := range len(label) {
		if label[i] < ' ' || label[i] > '~' {
			sum := sha256.Sum256([]byte(label))
			return `"rule-` + hex.EncodeToString(sum[:4]) + `"`
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(label) + `"`
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
