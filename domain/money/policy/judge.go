package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/amount"
)

// SumKey identifies a sum. Currency is set for Amount alone.
type SumKey struct {
	Per      Per
	Window   Span
	Of       Of
	Currency string
}

// Term returns what a movement adds to a sum of values or of amounts.
func (k SumKey) Term(f Facts) (s amount.Sum) {
	switch {
	case k.Of == Value:
		return f.Value.Sum()
	case k.Of == Amount && strings.EqualFold(k.Currency, f.Asset.CurrencyCode):
		return f.Amount.Sum()
	}
	return s
}

// Set is a set of rules that can be judged. It is immutable.
type Set struct {
	rules []compiled
	// at finds the rules of a kind by their asset; one with several assets is at each of them. Rules for any asset
	// stand at the asset "".
	at     map[place][]int
	wants  map[place]Wants
	counts map[Kind][]Per
	sums   []SumKey
	// governs says that an active rule is for decisions or settings.
	governs bool
}

type place struct {
	kind     Kind
	currency string
}

type compiled struct {
	Rule
	sums []int // indexes of Set.sums, for each sum
	// destinations are Except.Destinations as keys.
	destinations []string
	from, to     int // minutes of the day
	zone         *time.Location
}

// Compile returns the set of valid rules (Rule.Check). Inactive ones stay in it for Explain.
func Compile(rules []Rule) *Set {
	s := &Set{at: map[place][]int{}, wants: map[place]Wants{}, counts: map[Kind][]Per{}}
	seen := map[SumKey]int{}
	for i, r := range rules {
		c := compiled{Rule: r}
		for _, key := range r.Except.Destinations {
			c.destinations = append(c.destinations, canonicalKey(key))
		}
		for _, x := range r.Match.Sums {
			key := r.key(x)
			n, known := seen[key]
			if !known {
				n = len(s.sums)
				seen[key], s.sums = n, append(s.sums, key)
			}
			c.sums = append(c.sums, n)
		}
		if h := r.Match.Hours; h != nil {
			c.from, _ = minuteOf(h.From)
			c.to, _ = minuteOf(h.To)
			c.zone, _ = time.LoadLocation(h.Zone)
		}
		s.rules = append(s.rules, c)
		if r.Status == Inactive {
			continue
		}
		for _, k := range r.Kinds {
			for _, currency := range currencies(r.Match.Assets) {
				at := place{k, currency}
				s.at[at], s.wants[at] = append(s.at[at], i), s.wants[at].and(r.wants())
			}
			if r.Status == Trial {
				continue
			}
			s.governs = s.governs || k == Decision || k == Setting
			for _, x := range r.Match.Sums {
				if !slices.Contains(s.counts[k], x.Per) {
					s.counts[k] = append(s.counts[k], x.Per)
				}
			}
		}
	}
	return s
}

func (r Rule) key(x Sum) SumKey {
	k := SumKey{Per: x.Per, Window: x.Window, Of: x.Of}
	if x.Of == Amount && len(r.Match.Assets) > 0 {
		k.Currency = strings.ToUpper(r.Match.Assets[0].CurrencyCode)
	}
	return k
}

// currencies returns the currencies of assets in upper case, each once; "" for any. Codes may be in any case.
func currencies(assets []Asset) []string {
	if len(assets) == 0 {
		return []string{""}
	}
	all := make([]string, len(assets))
	for i, a := range assets {
		all[i] = strings.ToUpper(a.CurrencyCode)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Governs reports whether an active rule is for decisions or settings. On trial such a rule is only explained.
func (s *Set) Governs() bool { return s.governs }

// Sums returns the sums that Judge and Explain need, in the order of their totals. The rules of a movement may need
// only some of them: Needs.
func (s *Set) Sums() []SumKey { return s.sums }

// Needs returns the indexes of the sums that the active rules of a movement need, ascending; nil for none. The total of
// another one may be zero: only Verdict.Trial and Explain then differ. With trial it adds those of the rules on trial.
func (s *Set) Needs(f Facts, trial bool) (needed []int) {
	s.each(f, func(c *compiled) {
		if len(c.sums) > 0 && (trial || c.Status != Trial) && c.before(f) == "" {
			needed = append(needed, c.sums...)
		}
	})
	slices.Sort(needed)
	return slices.Compact(needed)
}

func (s *Set) each(f Facts, do func(*compiled)) {
	for _, i := range s.at[place{f.Kind, strings.ToUpper(f.Asset.CurrencyCode)}] {
		do(&s.rules[i])
	}
	if f.Asset.CurrencyCode != "" {
		for _, i := range s.at[place{f.Kind, ""}] {
			do(&s.rules[i])
		}
	}
}

// Verdict is what all rules together say about a movement. The zero value lets it pass.
type Verdict struct {
	Deny      bool
	Approvals []Quorum  // by group, ascending; each is needed
	Until     time.Time // the end of the wait; zero: none, or over
	Owner     OwnerPlan
	Rules     []Named // that ask for something, by label
	Trial     []Named // that would, and are on trial
}

// Passes reports whether nothing is asked for.
func (v Verdict) Passes() bool {
	return !v.Deny && len(v.Approvals) == 0 && v.Until.IsZero() && !v.Owner.Asked
}

// Quorum is how many members of a group must approve. Of several rules the shortest expiry applies.
type Quorum struct {
	Group    string `json:"group"`
	Required int    `json:"required"`
	Expires  Span   `json:"expires"`
}

// OwnerPlan is what the challenge of the owner must have.
type OwnerPlan struct {
	Asked             bool `json:"asked"`
	Required          int  `json:"required"`
	PhishingResistant bool `json:"phishingResistant"`
}

// Named is a version of a rule.
type Named struct {
	Label   string `json:"label"`
	Version int64  `json:"version"`
}

// Judge joins the effects of all active rules that match. It is DENY if any denies; of each group it has the largest
// quorum, and otherwise the latest end of a wait and the strictest plan for the owner. A wait that is over asks for
// nothing. totals has a total for each of Sums.
func (s *Set) Judge(f Facts, totals []Total) (v Verdict) {
	s.each(f, func(c *compiled) {
		why := c.before(f)
		if why == "" {
			why, _ = c.exceeded(f, totals)
		}
		if why != "" && why != noRate || !adds(&v, c, f) {
			return
		}
		at := &v.Rules
		if c.Status == Trial {
			at = &v.Trial
		}
		*at = append(*at, Named{c.Label, c.Version})
	})
	slices.SortFunc(v.Approvals, func(a, b Quorum) int { return cmp.Compare(a.Group, b.Group) })
	slices.SortFunc(v.Rules, byLabel)
	slices.SortFunc(v.Trial, byLabel)
	return v
}

func byLabel(a, b Named) int { return cmp.Compare(a.Label, b.Label) }

// adds joins the effect of a rule to a verdict, and reports whether the rule asks for something now.
func adds(v *Verdict, c *compiled, f Facts) bool {
	if c.Status == Trial {
		v = &Verdict{}
	}
	e := c.Effect
	switch e.Type {
	case Deny:
		v.Deny = true
	case Owner:
		v.Owner = OwnerPlan{true, max(v.Owner.Required, e.Required), v.Owner.PhishingResistant || e.PhishingResistant}
	case Wait:
		until := e.until(f)
		if !until.After(f.At) {
			return false
		}
		if until.After(v.Until) {
			v.Until = until
		}
	case Approval:
		v.Approvals = Join(v.Approvals, Quorum{e.Group, e.Required, cmp.Or(e.Expires, defaultExpiry)})
	}
	return true
}

// Join adds quorums: of those of one group the largest, with the shortest expiry.
func Join(all []Quorum, more ...Quorum) []Quorum {
	all = slices.Clone(all)
	for _, q := range more {
		i := slices.IndexFunc(all, func(o Quorum) bool { return o.Group == q.Group })
		if i < 0 {
			all = append(all, q)
			continue
		}
		all[i].Required, all[i].Expires = max(all[i].Required, q.Required), min(all[i].Expires, q.Expires)
	}
	return all
}

// until returns the end of a wait.
func (e Effect) until(f Facts) time.Time {
	from := f.Requested
	switch e.After {
	case AfterCredentials:
		from = f.Account.CredentialsAt
	case AfterCredit:
		from = f.Account.CreditedAt
	case AfterDestination:
		if !f.Destination.BookedAt.IsZero() {
			from = f.Destination.BookedAt
		}
	}
	if from.IsZero() {
		return from
	}
	return from.Add(time.Duration(e.For))
}

// defaultExpiry is how long an approval may take if the rule does not say it.
const defaultExpiry = Span(72 * time.Hour)

// before returns the first condition but the sums that does not hold; "" if all do.
func (c *compiled) before(f Facts) Reason {
	m := &c.Match
	switch {
	case !c.ExpiresAt.IsZero() && !c.ExpiresAt.After(f.At):
		return Expired
	case !anyOf(m.Assets, func(a Asset) bool {
		return strings.EqualFold(a.CurrencyCode, f.Asset.CurrencyCode) &&
			(a.Network == "" || strings.EqualFold(a.Network, f.Asset.Network))
	}):
		return OtherAsset
	case m.Direction != "" && m.Direction != f.Direction:
		return OtherDirection
	case m.Amount != nil && !m.Amount.exceeded(f):
		return BelowAmount
	case !m.Destination.holds(f):
		return OtherDestination
	case !m.Account.holds(f):
		return OtherAccount
	case !in(m.Device, f.Device):
		return OtherDevice
	case !in(m.Settings, f.Setting):
		return OtherSetting
	case !m.Initiator.holds(f.Initiator):
		return OtherInitiator
	case m.Hours != nil && !c.within(f.At):
		return OtherHour
	case slices.Contains(c.Except.Accounts, f.Account.ID) && f.Account.ID != "",
		slices.Contains(c.destinations, f.Destination.Key) && f.Destination.Key != "",
		len(c.Except.Initiators) > 0 && slices.Contains(c.Except.Initiators, f.Initiator.String()):
		return Excepted
	}
	return ""
}

// in reports whether a list has a value; an empty one has each.
func in[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

func anyOf[T any](list []T, is func(T) bool) bool {
	return len(list) == 0 || slices.ContainsFunc(list, is)
}

// exceeded holds for a value that is unknown, too.
func (o Over) exceeded(f Facts) bool {
	if o.Unit == InTRY {
		return !f.Rated || f.Value.Cmp(o.Over) > 0
	}
	return f.Amount.Cmp(o.Over) > 0
}

// younger reports whether an instant lies within a span before another; no span holds, an unknown instant does not.
func younger(s Span, at, now time.Time) bool {
	return s == 0 || !at.IsZero() && now.Sub(at) < time.Duration(s)
}

func same(want *bool, is bool) bool { return want == nil || *want == is }

func (d Destination) holds(f Facts) bool {
	at := f.Destination.BookedAt
	return same(d.InBook, !at.IsZero()) && same(d.FirstUse, !f.Destination.Used) &&
		(at.IsZero() || younger(d.BookAgeBelow, at, f.At))
}

func (a Account) holds(f Facts) bool {
	is := f.Account
	return in(a.Levels, is.Level) && in(a.AML, is.AML) && younger(a.AgeBelow, is.CreatedAt, f.At) &&
		younger(a.CredentialAgeBelow, is.CredentialsAt, f.At) && younger(a.CreditAgeBelow, is.CreditedAt, f.At) &&
		same(a.FirstWithdrawal, !is.Withdrew)
}

func (i Initiators) holds(is Initiator) bool {
	return in(i.Types, is.Type) && in(i.Names, is.Name) &&
		anyOf(i.Roles, func(role string) bool { return slices.Contains(is.Roles, role) })
}

// within reports whether an instant lies in the hours of the rule.
func (c *compiled) within(at time.Time) bool {
	at = at.In(c.zone)
	now := at.Hour()*60 + at.Minute()
	if c.from < c.to {
		return c.from <= now && now < c.to
	}
	return c.from <= now || now < c.to
}

// exceeded returns WithinSum if a sum is not exceeded, and which one. A movement without a rate exceeds each sum of
// values.
func (c *compiled) exceeded(f Facts, totals []Total) (why Reason, at int) {
	if c.Match.Amount != nil && c.Match.Amount.Unit == InTRY && !f.Rated {
		why = noRate
	}
	for i, x := range c.Match.Sums {
		t := totals[c.sums[i]]
		switch {
		case x.Of == Value && !f.Rated:
			why = noRate
		case !x.exceeded(t):
			return WithinSum, i
		}
	}
	return why, 0
}

func (x Sum) exceeded(t Total) bool {
	if x.Of == Count || x.Of == Accounts {
		most, _ := x.Over.Parts()
		return t.Number > most
	}
	return t.Sum.Sub(x.Over.Sum()).Sign() > 0
}

// Used returns a total as an amount, for people; the greatest amount if it is greater.
func (x Sum) Used(t Total) amount.Amount {
	if x.Of == Count || x.Of == Accounts {
		a, _ := amount.Of(t.Number, 0)
		return a
	}
	if a, err := t.Sum.Amount(); err == nil {
		return a
	}
	return amount.Most
}
