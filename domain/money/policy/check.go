package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Bounds of a policy.
const (
	MaxRules = 10_000
	MaxSums  = 64 // different ones of all rules that are not inactive

	maxLabel    = 200 // characters
	maxList     = 1000
	maxRequired = 5
	maxWindow   = Span(31 * Day)
	maxWait     = Span(720 * time.Hour)
	maxAge      = Span(3660 * Day)
)

// problems collects what is wrong with a rule.
type problems struct{ fault.Problems }

// span checks a span between two bounds; 0 is absent.
func (p *problems) span(field string, s, least, most Span) {
	p.Require(s == 0 || least <= s && s <= most, field, "must be from %s to %s", text(least), text(most))
}

func text(s Span) string {
	b, _ := s.MarshalText()
	return string(b)
}

// oneOf checks a value; required says whether it must be present.
func oneOf[T ~string](p *problems, field string, v T, required bool, known ...T) {
	p.Require(v == "" && !required || slices.Contains(known, v), field, "must be one of %s", joined(known))
}

func joined[T ~string](list []T) string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

func eachOf[T ~string](p *problems, field string, list []T, known ...T) {
	p.length(field, len(list))
	for _, v := range list {
		oneOf(p, field, v, true, known...)
	}
}

// only refuses a field that is used by a rule for other kinds of movements than these. Unknown kinds are refused as
// such.
func (p *problems) only(field string, used bool, kinds []Kind, these ...Kind) {
	other := func(k Kind) bool { return slices.Contains(allKinds, k) && !slices.Contains(these, k) }
	p.Require(!used || !slices.ContainsFunc(kinds, other), field, "is for the kinds %s alone", joined(these))
}

// length checks the length of a list.
func (p *problems) length(field string, n int) {
	p.Require(n <= maxList, field, "must have at most %d values", maxList)
}

func (p *problems) texts(field string, list []string) {
	p.length(field, len(list))
	faulty := func(v string) bool { return !readable(v) }
	p.Require(!slices.ContainsFunc(list, faulty), field, "must have texts of 1 to %d characters", maxLabel)
}

func readable(v string) bool {
	return v != "" && utf8.RuneCountInString(v) <= maxLabel && legible.Valid(v)
}

// Check validates a rule by itself: INVALID_FIELD with every faulty field.
func (r Rule) Check() error {
	var p problems
	p.Require(strings.TrimSpace(r.Label) == r.Label && readable(r.Label), "label",
		"must be 1 to %d characters of printable text", maxLabel)
	oneOf(&p, "status", r.Status, true, Active, Trial, Inactive)
	p.Require(len(r.Kinds) > 0, "kinds", "must name a kind")
	eachOf(&p, "kinds", r.Kinds, allKinds...)
	r.Match.check(&p, r.Kinds)
	p.texts("except.accounts", r.Except.Accounts)
	p.only("except.accounts", len(r.Except.Accounts) > 0, r.Kinds, money...)
	p.only("except.destinations", len(r.Except.Destinations) > 0, r.Kinds, Withdrawal)
	p.texts("except.destinations", r.Except.Destinations)
	p.texts("except.initiators", r.Except.Initiators)
	r.Effect.check(&p, r.Kinds)
	return fault.All(p.Problems)
}

// money are the kinds that move money.
var money = []Kind{Withdrawal, Deposit, Adjustment}

func (a Account) empty() bool {
	return len(a.Levels) == 0 && len(a.AML) == 0 && a.AgeBelow|a.CredentialAgeBelow|a.CreditAgeBelow == 0 &&
		a.FirstWithdrawal == nil
}

func (m Match) check(p *problems, kinds []Kind) {
	p.length("match.assets", len(m.Assets))
	p.only("match.assets", len(m.Assets) > 0, kinds, money...)
	p.only("match.direction", m.Direction != "", kinds, money...)
	p.only("match.amount", m.Amount != nil, kinds, money...)
	p.only("match.sums", len(m.Sums) > 0, kinds, money...)
	p.only("match.account", !m.Account.empty(), kinds, money...)
	for _, a := range m.Assets {
		p.Require(a.CurrencyCode != "", "match.assets", "must name a currencyCode")
	}
	oneOf(p, "match.direction", m.Direction, false, Out, In)
	if m.Amount != nil {
		oneOf(p, "match.amount.unit", m.Amount.Unit, true, InAsset, InTRY)
		p.Require(m.Amount.Over.Sign() >= 0, "match.amount.over", "must not be negative")
		p.Require(m.Amount.Unit != InAsset || oneCurrency(m.Assets), "match.amount.unit", "needs assets of one currency")
	}
	for i, x := range m.Sums {
		field := fmt.Sprintf("match.sums[%d].", i)
		x.check(p, field, m.Assets)
		p.only(field+"per", x.Per == PerDestination, kinds, Withdrawal)
	}
	p.only("match.destination", m.Destination != (Destination{}), kinds, Withdrawal)
	p.only("match.account.firstWithdrawal", m.Account.FirstWithdrawal != nil, kinds, Withdrawal)
	p.only("match.device", len(m.Device) > 0, kinds, Withdrawal)
	p.Require(len(m.Sums) <= MaxSums, "match.sums", "must be at most %d", MaxSums)
	p.span("match.destination.bookAgeBelow", m.Destination.BookAgeBelow, Span(time.Minute), maxAge)
	p.span("match.account.ageBelow", m.Account.AgeBelow, Span(time.Minute), maxAge)
	p.span("match.account.credentialAgeBelow", m.Account.CredentialAgeBelow, Span(time.Minute), maxAge)
	p.span("match.account.creditAgeBelow", m.Account.CreditAgeBelow, Span(time.Minute), maxAge)
	p.length("match.account.levels", len(m.Account.Levels))
	eachOf(p, "match.account.aml", m.Account.AML, "notRisky", "risky", "highRisk")
	eachOf(p, "match.device", m.Device, NewDevice, KnownDevice, RememberedDevice, NoDevice)
	eachOf(p, "match.settings", m.Settings, "FEE", "TREASURY", "LEVEL", "RATE")
	p.only("match.settings", len(m.Settings) > 0, kinds, Setting)
	eachOf(p, "match.initiator.types", m.Initiator.Types, User, Operator, Service)
	p.texts("match.initiator.names", m.Initiator.Names)
	p.texts("match.initiator.roles", m.Initiator.Roles)
	if m.Hours != nil {
		m.Hours.check(p)
	}
}

func (x Sum) check(p *problems, field string, assets []Asset) {
	oneOf(p, field+"per", x.Per, true, PerAccount, PerDestination, PerInitiator, PerAsset, PerPlatform)
	oneOf(p, field+"of", x.Of, true, Value, Amount, Count, Accounts)
	p.Require(Span(time.Minute) <= x.Window && x.Window <= maxWindow, field+"window", "must be from 1m to %s",
		text(maxWindow))
	switch {
	case x.Over.Sign() < 0:
		p.Require(false, field+"over", "must not be negative")
	case x.Of == Amount:
		p.Require(oneCurrency(assets), field+"of", "needs assets of one currency")
	case x.Of == Accounts && x.Per != PerDestination:
		p.Require(false, field+"of", "ACCOUNTS is for DESTINATION alone")
	case x.Of == Count || x.Of == Accounts:
		p.Require(x.Over.Fits(0), field+"over", "must be a whole number")
	}
}

func oneCurrency(assets []Asset) bool { return len(assets) > 0 && len(currencies(assets)) == 1 }

func (h Hours) check(p *problems) {
	_, from := minuteOf(h.From)
	_, to := minuteOf(h.To)
	const form = `must be a time of day such as "22:00"`
	p.Require(from, "match.hours.from", form)
	p.Require(to, "match.hours.to", form)
	p.Require(h.From != h.To, "match.hours.to", "must differ from from")
	_, err := time.LoadLocation(h.Zone)
	p.Require(err == nil && h.Zone != "" && h.Zone != "Local", "match.hours.zone",
		`must be a time zone of IANA such as "Europe/Istanbul"`)
}

// minuteOf returns the minute of the day of a text such as "22:05".
func minuteOf(text string) (minute int, ok bool) {
	at, err := time.Parse("15:04", text)
	return at.Hour()*60 + at.Minute(), err == nil && len(text) == len("15:04")
}

func (e Effect) check(p *problems, kinds []Kind) {
	oneOf(p, "effect.type", e.Type, true, Deny, Approval, Wait, Owner)
	unused := func(field string, is bool) { p.Require(!is, "effect."+field, "is not a field of %s", e.Type) }
	unused("group", e.Type != Approval && e.Group != "")
	unused("expires", e.Type != Approval && e.Expires != 0)
	unused("required", e.Type != Approval && e.Type != Owner && e.Required != 0)
	unused("phishingResistant", e.Type != Owner && e.PhishingResistant)
	unused("for", e.Type != Wait && e.For != 0)
	unused("after", e.Type != Wait && e.After != "")
	switch e.Type {
	case Approval:
		p.texts("effect.group", []string{e.Group})
		p.Require(1 <= e.Required && e.Required <= maxRequired, "effect.required", "must be from 1 to %d", maxRequired)
		p.span("effect.expires", e.Expires, Span(time.Hour), maxWait)
		p.only("effect.required", e.Required > 1, kinds, Withdrawal)
	case Wait:
		oneOf(p, "effect.after", e.After, true, AfterRequest, AfterCredentials, AfterCredit, AfterDestination)
		p.Require(Span(time.Minute) <= e.For && e.For <= maxWait, "effect.for", "must be from 1m to %s", text(maxWait))
		p.only("effect.type", true, kinds, Withdrawal, Deposit)
	case Owner:
		p.Require(0 <= e.Required && e.Required <= maxRequired, "effect.required", "must be from 0 to %d", maxRequired)
		p.only("effect.type", true, kinds, Withdrawal)
	}
}

// Fits reports whether a set of rules keeps MaxRules and MaxSums: INVALID_FIELD.
func Fits(rules []Rule) error {
	sums := map[SumKey]bool{}
	for _, r := range rules {
		if r.Status == Inactive {
			continue
		}
		for _, x := range r.Match.Sums {
			sums[r.key(x)] = true
		}
	}
	switch {
	case len(rules) > MaxRules:
		return fault.Invalid("label", "there are %d rules already", MaxRules)
	case len(sums) > MaxSums:
		return fault.Invalid("match.sums", "all rules together must have at most %d different sums", MaxSums)
	}
	return nil
}

// Number returns a whole number as the bound of a sum of Count or Accounts.
func Number(n int64) amount.Amount {
	a, _ := amount.Of(n, 0)
	return a
}
