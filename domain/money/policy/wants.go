package policy

import (
	"slices"
	"strings"

	"castellan/domain/money/addressbook/address"
)

// Wants are the facts that rules ask for and that need a read of their own. Any is whether a rule concerns such
// movements at all.
type Wants struct {
	Any      bool `json:"-"`
	Value    bool `json:"value,omitempty"`    // Facts.Value and Rated
	Booked   bool `json:"booked,omitempty"`   // DestinationFacts.BookedAt
	Used     bool `json:"used,omitempty"`     // DestinationFacts.Used
	Credited bool `json:"credited,omitempty"` // AccountFacts.CreditedAt
	Withdrew bool `json:"withdrew,omitempty"` // AccountFacts.Withdrew
	Roles    bool `json:"roles,omitempty"`    // Initiator.Roles
	Device   bool `json:"device,omitempty"`   // Facts.Device of an owner
}

func (w Wants) and(o Wants) Wants {
	return Wants{w.Any || o.Any, w.Value || o.Value, w.Booked || o.Booked, w.Used || o.Used, w.Credited || o.Credited,
		w.Withdrew || o.Withdrew, w.Roles || o.Roles, w.Device || o.Device}
}

// wants returns what a rule asks for.
func (r Rule) wants() Wants {
	m, e := r.Match, r.Effect
	w := Wants{Any: true, Value: m.Amount != nil && m.Amount.Unit == InTRY,
		Booked:   m.Destination.InBook != nil || m.Destination.BookAgeBelow != 0 || e.After == AfterDestination,
		Used:     m.Destination.FirstUse != nil,
		Credited: m.Account.CreditAgeBelow != 0 || e.After == AfterCredit,
		Withdrew: m.Account.FirstWithdrawal != nil, Roles: len(m.Initiator.Roles) > 0,
		Device: len(m.Device) > 0}
	for _, x := range m.Sums {
		w.Value = w.Value || x.Of == Value
	}
	return w
}

// Wants returns the facts that the rules of a movement ask for.
func (s *Set) Wants(kind Kind, currencyCode string) Wants {
	return s.wants[place{kind, strings.ToUpper(currencyCode)}].and(s.wants[place{kind, ""}])
}

// Counts returns what the sums of active rules for a kind of movements have in common. Each movement of the kind counts
// in them, also one that needs no sum itself.
func (s *Set) Counts(kind Kind) []Per { return s.counts[kind] }

// DestinationKey returns the key of a destination: network, address and tag, the same for all spellings of an address.
func DestinationKey(network, to, tag string) string {
	key := network + "/" + address.Canonical(to)
	if tag != "" {
		key += "/" + tag
	}
	return key
}

// canonicalKey returns the key of a destination that a person has written.
func canonicalKey(text string) string {
	parts := strings.SplitN(text, "/", 3)
	switch len(parts) {
	case 2:
		return DestinationKey(parts[0], parts[1], "")
	case 3:
		return DestinationKey(parts[0], parts[1], parts[2])
	}
	return text
}

// InForce reports whether a version of a rule is active in the set.
func (s *Set) InForce(n Named) bool {
	return slices.ContainsFunc(s.rules, func(c compiled) bool {
		return c.Label == n.Label && c.Version == n.Version && c.Status == Active
	})
}
