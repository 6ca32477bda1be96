package policy

import (
	"slices"

	"castellan/domain/kit/amount"
)

// Reason is why a rule does or does not count for a movement.
type Reason string

// The reasons. Decides is that of DENY, and Adds that of the other effects; OnTrial that of a rule on trial that
// matches; noRate of one that matches because the movement has no value in TRY.
const (
	NotActive        Reason = "INACTIVE"
	Expired          Reason = "EXPIRED"
	OtherKind        Reason = "OTHER_KIND"
	OtherAsset       Reason = "OTHER_ASSET"
	OtherDirection   Reason = "OTHER_DIRECTION"
	BelowAmount      Reason = "BELOW_AMOUNT"
	OtherDestination Reason = "OTHER_DESTINATION"
	OtherAccount     Reason = "OTHER_ACCOUNT"
	OtherDevice      Reason = "OTHER_DEVICE"
	OtherSetting     Reason = "OTHER_SETTING"
	OtherInitiator   Reason = "OTHER_INITIATOR"
	OtherHour        Reason = "OTHER_HOUR"
	Excepted         Reason = "EXCEPTED"
	WithinSum        Reason = "WITHIN_SUM"
	WaitOver         Reason = "WAIT_OVER"
	noRate           Reason = "NO_RATE"
	Decides          Reason = "DECIDES"
	Adds             Reason = "ADDS"
	OnTrial          Reason = "TRIAL"
)

// Considered is what one rule says about a movement. Used and Limit are those of the first sum that is not exceeded, or
// else of the first sum; nil without sums.
type Considered struct {
	Named
	Matched     bool
	Reason      Reason
	Used, Limit *amount.Amount
}

// Explain judges a movement and returns what each rule says about it, in the order of Compile. A rule matches exactly
// if Judge counts it.
func (s *Set) Explain(f Facts, totals []Total) (v Verdict, all []Considered) {
	for i := range s.rules {
		c := &s.rules[i]
		k := Considered{Named: Named{c.Label, c.Version}}
		k.Reason, k.Matched = c.reason(f, totals)
		if len(c.sums) > 0 && (k.Matched || k.Reason == WithinSum) {
			_, at := c.exceeded(f, totals)
			x := c.Match.Sums[at]
			used, limit := x.Used(totals[c.sums[at]]), x.Over
			k.Used, k.Limit = &used, &limit
		}
		all = append(all, k)
	}
	return s.Judge(f, totals), all
}

func (c *compiled) reason(f Facts, totals []Total) (why Reason, matched bool) {
	switch {
	case c.Status == Inactive:
		return NotActive, false
	case !slices.Contains(c.Kinds, f.Kind):
		return OtherKind, false
	}
	if why = c.before(f); why == "" {
		why, _ = c.exceeded(f, totals)
	}
	switch {
	case why != "" && why != noRate:
		return why, false
	case !adds(&Verdict{}, c, f):
		return WaitOver, false
	case c.Status == Trial:
		return OnTrial, true
	case why == noRate:
		return noRate, true
	case c.Effect.Type == Deny:
		return Decides, true
	}
	return Adds, true
}
