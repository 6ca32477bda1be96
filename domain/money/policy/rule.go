// Package policy judges movements of money by rules that administrators write (docs/decisions/pol.md).
//
// The one idea: every rule that matches counts, and their effects are joined. No rule permits anything, and their order
// has no meaning, so a further rule never loosens the policy. Judge is pure: it reads no clock and no store. Start
// reading at Rule, then Set.Judge.
package policy

import (
	"fmt"
	"strconv"
	"time"

	"castellan/domain/kit/amount"
)

// Kind is the kind of a movement.
type Kind string

// The kinds. Decision is an operator's decision about an entry of the queue; Setting is a change of what money costs or
// who may move how much of it.
const (
	Withdrawal Kind = "WITHDRAWAL"
	Deposit    Kind = "DEPOSIT"
	Adjustment Kind = "ADJUSTMENT"
	Decision   Kind = "DECISION"
	Setting    Kind = "SETTING"
)

var allKinds = []Kind{Withdrawal, Deposit, Adjustment, Decision, Setting}

// Status says whether a rule applies.
type Status string

// A rule on trial is judged and shown, and has no effect.
const (
	Active   Status = "ACTIVE"
	Trial    Status = "TRIAL"
	Inactive Status = "INACTIVE"
)

// Rule is a rule of the policy. It matches a movement if all conditions hold; a list holds if one of its values does,
// and an absent condition holds.
type Rule struct {
	Label     string    `json:"label"`
	Version   int64     `json:"version"`
	Status    Status    `json:"status"`
	Kinds     []Kind    `json:"kinds"`
	Match     Match     `json:"match"`
	Except    Except    `json:"except"`
	Effect    Effect    `json:"effect"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Match are the conditions of a rule.
type Match struct {
	Assets      []Asset     `json:"assets,omitempty"`
	Direction   Direction   `json:"direction,omitempty"`
	Amount      *Over       `json:"amount,omitempty"`
	Sums        []Sum       `json:"sums,omitempty"` // each must be exceeded
	Destination Destination `json:"destination,omitzero"`
	Account     Account     `json:"account,omitzero"`
	Device      []Device    `json:"device,omitempty"`
	Settings    []string    `json:"settings,omitempty"` // FEE, TREASURY, LEVEL, RATE
	Initiator   Initiators  `json:"initiator,omitzero"`
	Hours       *Hours      `json:"hours,omitempty"`
}

// Except are movements that a rule does not concern. A destination is Facts.Destination.Key, and an initiator has the
// form of Initiator.String.
type Except struct {
	Accounts     []string `json:"accounts,omitempty"`
	Destinations []string `json:"destinations,omitempty"`
	Initiators   []string `json:"initiators,omitempty"`
}

// Asset is a currency on a network; without a network, on each of them.
type Asset struct {
	CurrencyCode string `json:"currencyCode"`
	Network      string `json:"network,omitempty"`
}

// Direction is whether money leaves the account or enters it.
type Direction string

const (
	Out Direction = "OUT"
	In  Direction = "IN"
)

// Over holds for an amount greater than Over.
type Over struct {
	Over amount.Amount `json:"over"`
	Unit Unit          `json:"unit"`
}

// Unit is the unit of an amount: that of the asset, or the Turkish lira.
type Unit string

const (
	InAsset Unit = "ASSET"
	InTRY   Unit = "TRY"
)

// Sum holds if the movements of a rolling window, with the one that is judged, exceed Over. Counted are movements of
// the same kind and direction that are not cancelled or failed.
type Sum struct {
	Per    Per           `json:"per"`
	Window Span          `json:"window"`
	Of     Of            `json:"of"`
	Over   amount.Amount `json:"over"`
}

// Per is what the movements of a sum have in common.
type Per string

const (
	PerAccount     Per = "ACCOUNT"
	PerDestination Per = "DESTINATION"
	PerInitiator   Per = "INITIATOR"
	PerAsset       Per = "ASSET" // the currency, on all networks
	PerPlatform    Per = "PLATFORM"
)

// Of is what a sum adds up: values in TRY, amounts of the one currency of the rule, movements, or distinct accounts.
type Of string

const (
	Value    Of = "VALUE"
	Amount   Of = "AMOUNT"
	Count    Of = "COUNT"
	Accounts Of = "ACCOUNTS"
)

// Destination are conditions on where money goes. BookAgeBelow holds for a destination that is not in the book, too.
type Destination struct {
	InBook       *bool `json:"inBook,omitempty"`
	BookAgeBelow Span  `json:"bookAgeBelow,omitzero"`
	FirstUse     *bool `json:"firstUse,omitempty"`
}

// Account are conditions on the account. CreditAgeBelow holds for an account that got the asset within the time.
type Account struct {
	Levels             []int    `json:"levels,omitempty"`
	AML                []string `json:"aml,omitempty"`
	AgeBelow           Span     `json:"ageBelow,omitzero"`
	CredentialAgeBelow Span     `json:"credentialAgeBelow,omitzero"`
	CreditAgeBelow     Span     `json:"creditAgeBelow,omitzero"`
	FirstWithdrawal    *bool    `json:"firstWithdrawal,omitempty"`
}

// Device is what is known about the client with which an owner approved a withdrawal (D-POL-23).
type Device string

// A client is known if its session, or a registered device that signed the approval, is a day old; it is remembered if
// its key completed a method of the challenge (package remembered). A movement without its owner has no device.
const (
	NewDevice        Device = "NEW"
	KnownDevice      Device = "KNOWN"
	RememberedDevice Device = "REMEMBERED"
	NoDevice         Device = "NONE"
)

// Initiators are conditions on who asked.
type Initiators struct {
	Types []InitiatorType `json:"types,omitempty"`
	Names []string        `json:"names,omitempty"`
	Roles []string        `json:"roles,omitempty"`
}

// InitiatorType is the kind of an initiator.
type InitiatorType string

const (
	User     InitiatorType = "USER"
	Operator InitiatorType = "OPERATOR"
	Service  InitiatorType = "SERVICE"
)

// Hours are hours of the day, from From until before To, "15:04". They go over midnight if From is later.
type Hours struct {
	From string `json:"from"`
	To   string `json:"to"`
	Zone string `json:"zone"` // IANA
}

// EffectType is what a rule does.
type EffectType string

const (
	Deny     EffectType = "DENY"
	Approval EffectType = "APPROVAL"
	Wait     EffectType = "WAIT"
	Owner    EffectType = "OWNER"
)

// Effect is what happens to a movement that a rule matches. An approval needs Required members of Group; an owner's
// challenge at least Required methods (0: as its policy says).
type Effect struct {
	Type              EffectType `json:"type"`
	Group             string     `json:"group,omitempty"`
	Required          int        `json:"required,omitempty"`
	Expires           Span       `json:"expires,omitzero"`
	For               Span       `json:"for,omitzero"`
	After             After      `json:"after,omitempty"`
	PhishingResistant bool       `json:"phishingResistant,omitempty"`
}

// After is the instant from which a WAIT counts. Without such an instant it counts from the request, but for
// AfterCredentials and AfterCredit, where there is nothing to wait for.
type After string

const (
	AfterRequest     After = "REQUEST"
	AfterCredentials After = "CREDENTIALS"
	AfterCredit      After = "CREDIT"
	AfterDestination After = "DESTINATION" // its entry into the address book
)

// Span is a duration of whole minutes. Its text is a number with m, h or d: "90m", "48h", "31d".
type Span time.Duration

// Day is a duration of 24 hours.
const Day = 24 * time.Hour

var units = map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': Day}

// UnmarshalText reads a span.
func (s *Span) UnmarshalText(text []byte) error {
	if len(text) < 2 {
		return errSpan
	}
	last := len(text) - 1
	n, err := strconv.ParseUint(string(text[:last]), 10, 16)
	unit, known := units[text[last]]
	if err != nil || !known {
		return errSpan
	}
	*s = Span(time.Duration(n) * unit)
	return nil
}

var errSpan = fmt.Errorf(`must be a number with m, h or d, such as "48h"`)

// MarshalText returns hours, or minutes if they are not whole hours.
func (s Span) MarshalText() ([]byte, error) {
	if d := time.Duration(s); d%time.Hour != 0 {
		return fmt.Appendf(nil, "%dm", d/time.Minute), nil
	}
	return fmt.Appendf(nil, "%dh", time.Duration(s)/time.Hour), nil
}
