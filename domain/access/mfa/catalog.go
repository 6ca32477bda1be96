package mfa

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Catalog is a snapshot of the configuration. It never changes and is safe
// for concurrent use; values from it are only read.
type Catalog struct {
	methods  map[string]Method
	actions  map[string]Action
	byAction map[string][]candidate // the most specific first
	defaults map[string]Plan        // of actions with a default of their own
	fallback Plan                   // of every other action
}

// candidate is a policy with its plan worked out.
type candidate struct {
	Policy
	address string // canonical EntityID of an IP policy
	plan    Plan
}

// NewCatalog makes a snapshot of the configuration. The texts and choices of
// its arguments must not change afterwards. Actions that the service knows are there even without a row.
func NewCatalog(methods []Method, actions []Action, policies []Policy) *Catalog {
	c := &Catalog{methods: map[string]Method{}, actions: map[string]Action{}, byAction: map[string][]candidate{},
		defaults: map[string]Plan{}}
	for _, a := range builtIn {
		c.actions[a.Code] = a
	}
	for _, a := range actions {
		c.actions[a.Code] = a
	}
	for _, m := range methods {
		c.methods[m.Code] = m
	}
	for _, p := range policies {
		e := candidate{Policy: p, plan: plan(c.methods, p.ActionCode, p.Methods, p.Required)}
		e.plan.PolicyID, e.plan.EntityType, e.plan.NumberMatching = p.ID, p.EntityType, p.NumberMatching
		if p.EntityType == IP {
			e.address = canonicalIP(p.EntityID)
		}
		c.byAction[p.ActionCode] = append(c.byAction[p.ActionCode], e)
	}
	for _, list := range c.byAction {
		slices.SortFunc(list, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(rank(a.EntityType), rank(b.EntityType)), cmp.Compare(a.ID, b.ID))
		})
	}
	for _, action := range []string{ResetPassword, VerifyEmail, Register} {
		c.defaults[action] = plan(c.methods, action, nil, 0)
	}
	c.fallback = plan(c.methods, "", []Choice{{Code: TOTP}, {Code: PUSH}, {Code: SMS}, {Code: MAIL}}, 1)
	return c
}

// Method finds a method by its code.
func (c *Catalog) Method(code string) (Method, bool) {
	m, ok := c.methods[code]
	return m, ok
}

// Action finds an action by its code: as stored, else as built in.
func (c *Catalog) Action(code string) (Action, bool) {
	a, ok := c.actions[code]
	return a, ok
}

// ActionTitle is the title of an action in a language (D-GEN-16); the code
// itself where there is none.
func (c *Catalog) ActionTitle(code, lang string) string {
	return cmp.Or(c.actions[code].Title.In(lang), code)
}

// judge returns Chosen when the policy applies.
func (p *candidate) judge(now time.Time, userID, address string) Verdict {
	switch {
	case p.Type != Common:
		return UnknownType
	case p.EntityType == UserID && (userID == "" || p.EntityID != userID),
		p.EntityType == IP && (address == "" || p.address != address),
		rank(p.EntityType) == unknownRank:
		return OtherEntity
	case p.Expired(now.UnixMilli()):
		return Expired
	}
	return Chosen
}

const unknownRank = 3

// rank orders the kinds of entities from the most specific on.
func rank(t EntityType) int {
	if i := slices.Index([]EntityType{UserID, IP, General}, t); i >= 0 {
		return i
	}
	return unknownRank
}

// canonicalIP writes an address in one way, so that an IPv4 address matches
// its IPv6 form; "" for what is no address.
func canonicalIP(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return ""
	}
	return a.Unmap().WithZone("").String()
}
