package challenge

import (
	"slices"
	"strings"

	"castellan/domain/delivery/message"
)

// kind is what the service knows of a kind of second factor. docs/add-a-method.md describes the columns.
type kind struct {
	name  Name
	alias string // another wire name; "" for none
	// channel delivers its codes; "" for a kind without codes that are sent.
	channel message.Channel
	// address returns the address of an account to which a code is sent; "" for none.
	address func(Account) string
	// typed reports that the starter of a public flow has typed the address. So its hint reveals nothing (D-2FA-26).
	typed bool
	// hint masks an address; dial is the country code of the account's telephone number.
	hint func(to, dial string) string
	// owned reports whether an account can complete the kind.
	owned func(Account) bool
	// counts is the budget of its wrong values, and with it the factor that they switch off.
	counts budgetKind
	// amr are its values of RFC 8176.
	amr []string
}

// budgetKind is a budget of wrong values (D-2FA-13).
type budgetKind int8

const (
	uncounted  budgetKind = iota // an answer is signed and cannot be guessed
	sentCodes                    // of all kinds whose codes are sent
	timedCodes                   // of the authenticator app
)

// kinds lists the kinds of second factors (section 2.1 of the interface). Its rows have no field names, so a kind
// without one of the columns does not compile.
var kinds = []kind{
	{TOTP, "", "", none, false, nil, func(a Account) bool { return a.TOTP }, timedCodes, []string{"otp"}},
	{PUSH, "PUSH_OTP", "", none, false, nil, func(a Account) bool { return a.Push }, uncounted, []string{"hwk"}},
	{SMS, "", message.SMS, phoneNumber, true, phoneHint, nil, sentCodes, []string{"sms", "otp"}},
	{MAIL, "", message.MAIL, mailAddress, false, mailHint, nil, sentCodes, []string{"otp"}},
}

func none(Account) string          { return "" }
func mailAddress(a Account) string { return a.Mail }
func phoneNumber(a Account) string { return a.Phone }

// of returns the row of a kind; the zero row for an unknown one.
func (n Name) of() *kind {
	for i := range kinds {
		if kinds[i].name == n {
			return &kinds[i]
		}
	}
	return new(kind)
}

func Names() []Name {
	out := make([]Name, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

func counted(by budgetKind) (names []Name) {
	for _, k := range kinds {
		if k.counts == by {
			names = append(names, k.name)
		}
	}
	return names
}

// Sending returns the kinds whose code would reach one of the account's addresses.
func Sending(to Account) (names []Name) {
	for _, k := range kinds {
		if k.channel != "" && k.address(to) != "" {
			names = append(names, k.name)
		}
	}
	return names
}

// ParseName reads a method name. PUSH_OTP is an alias of PUSH (D-2FA-08).
func ParseName(s string) (Name, bool) {
	for _, k := range kinds {
		if s == string(k.name) || s == k.alias && s != "" {
			return k.name, true
		}
	}
	return "", false
}

// Listed returns names as a sentence lists them: "SMS, MAIL".
func Listed(names []Name) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// Enum returns the values that the description of the interface lists.
func (Name) Enum() []string { return strings.Split(Listed(Names()), ", ") }

// Sent reports whether the method's value is a code sent to the user, so that it can be renewed.
func (n Name) Sent() bool { return n.of().channel != "" }

// Channel returns the channel that delivers the codes of the kind; "" if none are sent.
func (n Name) Channel() message.Channel { return n.of().channel }

// Address returns the address of an account to which a code of the kind is sent; "" for none.
func (n Name) Address(a Account) string {
	if k := n.of(); k.channel != "" {
		return k.address(a)
	}
	return ""
}

// Typed reports whether the starter of a public flow has typed the address of the kind (D-2FA-26).
func (n Name) Typed() bool { return n.of().typed }

// Hint masks an address of the kind; dial is the country code of the account's telephone number (D-2FA-26).
func (n Name) Hint(to, dial string) string {
	if k := n.of(); k.hint != nil {
		return k.hint(to, dial)
	}
	return ""
}

// AMR returns the values of RFC 8176 for a completed method of the kind.
func (n Name) AMR() []string { return slices.Clone(n.of().amr) }

// Owns reports whether the account can complete a method of this kind.
func (a Account) Owns(n Name) bool {
	k := n.of()
	if k.channel != "" {
		return k.address(a) != ""
	}
	return k.owned != nil && k.owned(a)
}

// mailHint keeps the first letter and the domain.
func mailHint(to, _ string) string {
	name, domain, ok := strings.Cut(to, "@")
	if !ok || name == "" {
		return "***"
	}
	return string([]rune(name)[0]) + "***@" + domain
}

// phoneHint keeps the country code and the last two digits.
func phoneHint(to, dial string) string {
	keep := 1 // the plus
	if strings.HasPrefix(to[min(1, len(to)):], dial) {
		keep += len(dial)
	}
	if len(to) < keep+4 {
		return "***"
	}
	return to[:keep] + strings.Repeat("*", len(to)-keep-2) + to[len(to)-2:]
}
