package firewall

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/guard/ratelimit"
)

// Compile creates the snapshot of an application (D-WAF-01) from all rules. It leaves out rules that have no effect
// now or later: inactive and expired ones, and those without targets.
func Compile(rules []Rule, app string, nowMs int64) *Snapshot {
	s := &Snapshot{rules: rules, app: app, at: make(map[string]int, len(rules)), rates: make([]*Rate, len(rules))}
	for i := range rules {
		s.at[rules[i].Label] = i
		s.rates[i] = newRate(&rules[i])
	}
	return s.compile(nil, nil, nowMs)
}

// With returns the snapshot in which the given rules replace those with the same labels; a rule with a new label
// comes last. Only groups that a changed rule is or was in are compiled again.
func (s *Snapshot) With(changed []Rule, nowMs int64) *Snapshot {
	next := &Snapshot{rules: slices.Clone(s.rules), app: s.app, at: s.at, rates: slices.Clone(s.rates)}
	moved := map[int]bool{}
	for _, r := range changed {
		i, known := next.at[r.Label]
		if !known {
			if len(next.at) == len(s.at) {
				next.at = maps.Clone(s.at)
			}
			i = len(next.rules)
			next.at[r.Label] = i
			next.rules, next.rates = append(next.rules, r), append(next.rates, nil)
		}
		next.rules[i], next.rates[i] = r, newRate(&r)
		moved[i] = true
	}
	return next.compile(s, moved, nowMs)
}

// compile builds the groups. It reuses those of before that contain none of the moved rules.
func (s *Snapshot) compile(before *Snapshot, moved map[int]bool, nowMs int64) *Snapshot {
	made := map[string]*group{}
	before.keep(made, moved)
	s.buildLimits(made, nowMs)
	if trial := s.build(made, nowMs, false); trial {
		s.trial = &Snapshot{app: s.app, rules: s.rules, rates: s.rates}
		if before != nil {
			before.trial.keep(made, moved)
		}
		s.trial.build(made, nowMs, true)
	}
	return s
}

// keep adds the groups that contain none of the moved rules.
func (s *Snapshot) keep(made map[string]*group, moved map[int]bool) {
	if s == nil {
		return
	}
	hasMoved := func(i int) bool { return moved[i] }
	add := func(g *group) {
		if g != nil && !slices.ContainsFunc(g.of, hasMoved) {
			made[groupKey(g.of)] = g
		}
	}
	add(s.always)
	for _, g := range s.resources {
		add(g)
	}
	for _, l := range s.limits {
		add(l.group)
	}
}

// groupKey returns the name of the group of some rules.
func groupKey(of []int) string {
	key := make([]byte, 0, 4*len(of))
	for _, i := range of {
		key = binary.AppendUvarint(key, uint64(i))
	}
	return string(key)
}

// build groups the rules by the resources they apply to. Resources under the same rules, such as all resources of one
// rule, share a group. It reports whether a deciding rule is on trial; such rules are left out unless dry is true.
func (s *Snapshot) build(made map[string]*group, nowMs int64, dry bool) (tried bool) {
	var always []int
	by := map[string][]int{}
	for i := range s.rules {
		r := &s.rules[i]
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
		s.always = s.shared(made, always)
	}
	s.resources = make(map[string]*group, len(by))
	for resource, of := range by {
		s.resources[resource] = s.shared(made, slices.Compact(of))
	}
	return tried
}

// shared returns the group of some rules, of which there is one.
func (s *Snapshot) shared(made map[string]*group, of []int) *group {
	key := groupKey(of)
	if made[key] == nil {
		made[key] = s.group(of)
	}
	return made[key]
}

func (s *Snapshot) group(of []int) *group {
	g := &group{of: of}
	for kind := range g.named {
		g.named[kind] = map[string]*hit{}
	}
	ips := map[netip.Prefix]*hit{}
	for _, i := range of {
		r := &s.rules[i]
		until := end(r)
		g.needs.User = g.needs.User || r.EntityType == UserID
		g.needs.Service = g.needs.Service || r.EntityType == AppID
		if r.Type == WhitelistForce {
			g.forceUntil = max(g.forceUntil, until)
		}
		kind := kindIndex[r.EntityType]
		if r.AllEntities {
			note(&g.all[kind], r, until, s.rates[i])
			continue
		}
		for _, e := range r.Entities {
			if r.EntityType != IP {
				note(at(g.named[kind], e), r, until, s.rates[i])
			} else if p, ok := target(r, e); ok {
				note(at(ips, p), r, until, s.rates[i])
			}
		}
	}
	g.ips = newNetworks(ips)
	return g
}

// target returns the network of an entity. A single IPv6 address counts with its /64 (D-WAF-08); in a rule that
// allows or blocks it is that address alone.
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

func note(h *hit, r *Rule, until int64, rate *Rate) {
	if k, decides := kindOf[r.Type]; decides {
		h.until[k] = max(h.until[k], until)
		return
	}
	// One rule may name an entity twice, by two addresses of one /64.
	if rate != nil && (len(h.rates) == 0 || h.rates[len(h.rates)-1] != rate) {
		h.rates = append(h.rates, rate)
	}
}

// newRate returns nil for a rule that is not a complete rate limit.
func newRate(r *Rule) *Rate {
	if r.Type != RateLimit || r.PeriodMs == nil || r.Limit == nil {
		return nil
	}
	name := quoted(r.Label)
	period := time.Duration(*r.PeriodMs) * time.Millisecond
	policy := name + ";q=" + strconv.FormatInt(*r.Limit, 10) + ";w=" + strconv.FormatInt(seconds(period), 10)
	return &Rate{Label: r.Label, Limit: *r.Limit, Period: period, DryRun: r.DryRun, until: end(r), kind: r.EntityType,
		any: slices.ContainsFunc(r.Resources, isLimit), policy: policy, item: name + ";r="}
}

// quoted returns a label as a string of a structured field (RFC 9651), which is ASCII. Any other label is replaced by
// its hash (D-WAF-10).
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
