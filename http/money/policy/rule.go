package policy

import (
	"cmp"
	"fmt"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/policy"
	"castellan/http/rest"
)

// moneyRule is a rule in an answer.
type moneyRule struct {
	Label     string     `json:"label" example:"Large withdrawals"`
	Version   int64      `json:"version" example:"1"`
	Status    string     `json:"status" enum:"ACTIVE,TRIAL,INACTIVE"`
	Kinds     []string   `json:"kinds" doc:"kinds of movements" doc.enum:"WITHDRAWAL,DEPOSIT,ADJUSTMENT,DECISION,SETTING"`
	Match     match      `json:"match" doc:"conditions, all of which must hold"`
	Except    except     `json:"except" doc:"movements that the rule does not concern"`
	Effect    effect     `json:"effect"`
	ExpiresAt *rest.Time `json:"expiresAt" doc:"null: never" example:"2027-01-31T10:00:00.000Z"`
	Hits      *int64     `json:"hits" doc:"of this version in this hour and the 23 before; null: not counted" example:"3"`
}

// ruleFields are the fields of a new rule. The domain requires them, because a list of rules replaces them.
type ruleFields struct {
	Label     string     `json:"label,omitempty" doc:"required; unique" example:"Large withdrawals" doc.maxLength:"200"`
	Status    string     `json:"status,omitempty" doc:"required" doc.enum:"ACTIVE,TRIAL,INACTIVE"`
	Kinds     []string   `json:"kinds,omitempty" doc:"required" doc.enum:"WITHDRAWAL,DEPOSIT,ADJUSTMENT,DECISION,SETTING"`
	Match     match      `json:"match,omitzero" doc:"conditions, all of which must hold; none: every movement"`
	Except    except     `json:"except,omitzero" doc:"movements that the rule does not concern"`
	Effect    effect     `json:"effect,omitzero" doc:"required"`
	ExpiresAt *rest.Time `json:"expiresAt" doc:"default: never" example:"2027-01-31T10:00:00.000Z"`
}

// match are conditions. A list holds if one of its values does. Unknown fields are refused: a condition of another
// version must not be left out.
type match struct {
	rest.Strict
	Assets      []asset     `json:"assets,omitempty"`
	Direction   string      `json:"direction,omitempty" enum:"OUT,IN"`
	Amount      *over       `json:"amount,omitempty"`
	Sums        []sum       `json:"sums,omitempty" doc:"each must be exceeded"`
	Destination destination `json:"destination,omitzero"`
	Account     account     `json:"account,omitzero"`
	Device      []string    `json:"device,omitempty" doc.enum:"NEW,KNOWN,REMEMBERED,NONE"`
	Settings    []string    `json:"settings,omitempty" doc:"of the kind SETTING" doc.enum:"FEE,TREASURY,LEVEL,RATE"`
	Initiator   initiators  `json:"initiator,omitzero"`
	Hours       *hours      `json:"hours,omitempty"`
}

type asset struct {
	rest.Strict
	CurrencyCode string `json:"currencyCode,omitempty" example:"USDT"`
	Network      string `json:"network,omitempty" doc:"default: every network" example:"TRX"`
}

type over struct {
	rest.Strict
	Over string `json:"over,omitempty" doc:"the condition holds for a greater amount" example:"2000000"`
	Unit string `json:"unit,omitempty" doc:"TRY, or that of the asset" doc.enum:"TRY,ASSET"`
}

type sum struct {
	rest.Strict
	Per    string `json:"per,omitempty" doc.enum:"ACCOUNT,DESTINATION,INITIATOR,ASSET,PLATFORM"`
	Window string `json:"window,omitempty" doc:"rolling, from 1m to 31d" example:"24h"`
	Of     string `json:"of,omitempty" doc:"VALUE is in TRY" doc.enum:"VALUE,AMOUNT,COUNT,ACCOUNTS"`
	Over   string `json:"over,omitempty" doc:"the movement itself is included" example:"5000000"`
}

type destination struct {
	rest.Strict
	InBook       *bool  `json:"inBook,omitempty" doc:"whether it is in the address book"`
	BookAgeBelow string `json:"bookAgeBelow,omitempty" doc:"age of its entry; also holds without one" example:"48h"`
	FirstUse     *bool  `json:"firstUse,omitempty" doc:"whether the account never withdrew to it"`
}

type account struct {
	rest.Strict
	Levels             []int    `json:"levels,omitempty"`
	AML                []string `json:"aml,omitempty" doc.enum:"notRisky,risky,highRisk"`
	AgeBelow           string   `json:"ageBelow,omitempty" example:"168h"`
	CredentialAgeBelow string   `json:"credentialAgeBelow,omitempty" doc:"since a credential changed" example:"24h"`
	CreditAgeBelow     string   `json:"creditAgeBelow,omitempty" doc:"since a credit of the asset" example:"48h"`
	FirstWithdrawal    *bool    `json:"firstWithdrawal,omitempty"`
}

type initiators struct {
	rest.Strict
	Types []string `json:"types,omitempty" doc.enum:"USER,OPERATOR,SERVICE"`
	Names []string `json:"names,omitempty" doc:"user ids of operators, names of service keys"`
	Roles []string `json:"roles,omitempty"`
}

type hours struct {
	rest.Strict
	From string `json:"from,omitempty" example:"22:00"`
	To   string `json:"to,omitempty" example:"07:00"`
	Zone string `json:"zone,omitempty" doc:"IANA" example:"Europe/Istanbul"`
}

type except struct {
	rest.Strict
	Accounts     []string `json:"accounts,omitempty" doc:"user ids"`
	Destinations []string `json:"destinations,omitempty" doc:"network, address and tag"`
	Initiators   []string `json:"initiators,omitempty" doc:"such as SERVICE:shop"`
}

func (e *except) accounts() []string {
	if e == nil {
		return nil
	}
	return e.Accounts
}

type effect struct {
	rest.Strict
	Type              string `json:"type,omitempty" doc.enum:"DENY,APPROVAL,WAIT,OWNER"`
	Group             string `json:"group,omitempty" doc:"APPROVAL: role of the approvers" example:"treasury"`
	Required          int    `json:"required,omitempty" doc:"APPROVAL: approvers, 1 to 5; OWNER: methods" example:"2"`
	Expires           string `json:"expires,omitempty" doc:"APPROVAL: 1h to 720h, default 72h" example:"72h"`
	For               string `json:"for,omitempty" doc:"WAIT: 1m to 720h" example:"48h"`
	After             string `json:"after,omitempty" doc:"WAIT: start" enum:"REQUEST,CREDENTIALS,CREDIT,DESTINATION"`
	PhishingResistant bool   `json:"phishingResistant,omitempty" doc:"OWNER: a method that resists phishing"`
}

// reader collects what cannot be read of a rule.
type reader struct{ fault.Problems }

func (p *reader) span(field, text string) (s policy.Span) {
	p.Require(text == "" || s.UnmarshalText([]byte(text)) == nil && s != 0, field,
		`must be a number with m, h or d, such as "48h"`)
	return s
}

func (p *reader) amount(field, text string) amount.Amount {
	d, err := rest.ParseDecimal(text)
	if err != nil {
		err = amount.ErrNumber
	}
	var a amount.Amount
	if err == nil {
		a, err = amount.Parse(string(d))
	}
	p.Require(err == nil, field, "%v", err)
	return a
}

// rule returns the rule, checked by itself. INVALID_FIELD with every faulty field.
func (in ruleFields) rule() (policy.Rule, error) {
	var p reader
	r := policy.Rule{Label: in.Label, Status: policy.Status(in.Status), Kinds: texts[policy.Kind](in.Kinds),
		Match: in.Match.read(&p), Except: in.Except.read(), Effect: in.Effect.read(&p)}
	if in.ExpiresAt != nil {
		r.ExpiresAt = in.ExpiresAt.Time.UTC()
	}
	return r, cmp.Or(fault.All(p.Problems), r.Check())
}

func (m match) read(p *reader) policy.Match {
	out := policy.Match{Direction: policy.Direction(m.Direction), Device: texts[policy.Device](m.Device),
		Settings: m.Settings,
		Destination: policy.Destination{InBook: m.Destination.InBook, FirstUse: m.Destination.FirstUse,
			BookAgeBelow: p.span("match.destination.bookAgeBelow", m.Destination.BookAgeBelow)},
		Account: policy.Account{Levels: m.Account.Levels, AML: m.Account.AML, FirstWithdrawal: m.Account.FirstWithdrawal,
			AgeBelow:           p.span("match.account.ageBelow", m.Account.AgeBelow),
			CredentialAgeBelow: p.span("match.account.credentialAgeBelow", m.Account.CredentialAgeBelow),
			CreditAgeBelow:     p.span("match.account.creditAgeBelow", m.Account.CreditAgeBelow)},
		Initiator: policy.Initiators{Types: texts[policy.InitiatorType](m.Initiator.Types), Names: m.Initiator.Names,
			Roles: m.Initiator.Roles}}
	for _, a := range m.Assets {
		out.Assets = append(out.Assets, policy.Asset{CurrencyCode: a.CurrencyCode, Network: a.Network})
	}
	if m.Amount != nil {
		out.Amount = &policy.Over{Over: p.amount("match.amount.over", m.Amount.Over), Unit: policy.Unit(m.Amount.Unit)}
	}
	for i, x := range m.Sums {
		field := fmt.Sprintf("match.sums[%d].", i)
		out.Sums = append(out.Sums, policy.Sum{Per: policy.Per(x.Per), Of: policy.Of(x.Of),
			Window: p.span(field+"window", x.Window), Over: p.amount(field+"over", x.Over)})
	}
	if h := m.Hours; h != nil {
		out.Hours = &policy.Hours{From: h.From, To: h.To, Zone: h.Zone}
	}
	return out
}

func (e except) read() policy.Except {
	return policy.Except{Accounts: e.Accounts, Destinations: e.Destinations, Initiators: e.Initiators}
}

func (e effect) read(p *reader) policy.Effect {
	return policy.Effect{Type: policy.EffectType(e.Type), Group: e.Group, Required: e.Required,
		Expires: p.span("effect.expires", e.Expires), For: p.span("effect.for", e.For), After: policy.After(e.After),
		PhishingResistant: e.PhishingResistant}
}

func show(r policy.Rule) moneyRule {
	m, e := r.Match, r.Effect
	out := moneyRule{Label: r.Label, Version: r.Version, Status: string(r.Status), Kinds: texts[string](r.Kinds),
		Match: match{Direction: string(m.Direction), Device: texts[string](m.Device), Settings: m.Settings,
			Destination: destination{InBook: m.Destination.InBook, FirstUse: m.Destination.FirstUse,
				BookAgeBelow: text(m.Destination.BookAgeBelow)},
			Account: account{Levels: m.Account.Levels, AML: m.Account.AML, AgeBelow: text(m.Account.AgeBelow),
				CredentialAgeBelow: text(m.Account.CredentialAgeBelow), CreditAgeBelow: text(m.Account.CreditAgeBelow),
				FirstWithdrawal: m.Account.FirstWithdrawal},
			Initiator: initiators{Types: texts[string](m.Initiator.Types), Names: m.Initiator.Names, Roles: m.Initiator.Roles}},
		Except: except{Accounts: r.Except.Accounts, Destinations: r.Except.Destinations,
			Initiators: r.Except.Initiators},
		Effect: effect{Type: string(e.Type), Group: e.Group, Required: e.Required, Expires: text(e.Expires),
			For: text(e.For), After: string(e.After), PhishingResistant: e.PhishingResistant},
		ExpiresAt: rest.At(r.ExpiresAt)}
	for _, a := range m.Assets {
		out.Match.Assets = append(out.Match.Assets, asset{CurrencyCode: a.CurrencyCode, Network: a.Network})
	}
	if m.Amount != nil {
		out.Match.Amount = &over{Over: m.Amount.Over.String(), Unit: string(m.Amount.Unit)}
	}
	for _, x := range m.Sums {
		out.Match.Sums = append(out.Match.Sums,
			sum{Per: string(x.Per), Window: text(x.Window), Of: string(x.Of), Over: x.Over.String()})
	}
	if h := m.Hours; h != nil {
		out.Match.Hours = &hours{From: h.From, To: h.To, Zone: h.Zone}
	}
	return out
}

// texts converts a list of texts; an empty list is nil.
func texts[To, From ~string](list []From) (out []To) {
	for _, v := range list {
		out = append(out, To(v))
	}
	return out
}

func text(s policy.Span) string {
	if s == 0 {
		return ""
	}
	b, _ := s.MarshalText()
	return string(b)
}

// within puts the faulty fields of a rule under a prefix.
func within(prefix string, err error) error {
	var ps fault.Problems
	ps.Join(err)
	for i := range ps {
		ps[i].Field = prefix + ps[i].Field
	}
	return cmp.Or(fault.All(ps), err)
}

// ReadRules reads the body of an addition, as the endpoint does. INVALID_FIELD with every faulty field.
func ReadRules(body []byte) ([]policy.Rule, error) {
	add := rest.Post(RulesPath, "", rest.Tenant, Group{}.add)
	in, _, err := add.Bind(rest.Query{}, body)
	if err != nil {
		return nil, err
	}
	return in.(*addRequest).rules()
}

// Shown returns the rules in the shape of an answer, for JSON.
func Shown(rules []policy.Rule) any { return rest.Each(rules, show) }
