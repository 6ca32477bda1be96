package mfa

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"castellan/domain/kit/sorting"
)

// Catalog is an immutable snapshot of the configuration, safe for concurrent use. Callers must not change its values.
type Catalog struct {
	methods  map[string]Method
	actions  map[string]Action
	byAction map[string][]candidate // the most specific first
	defaults map[string]Plan        // of actions with their own default
	fallback Plan                   // of every other action
	grave    []string               // Admin.Grave; nil outside of the check of a write
}

// candidate is a policy with its computed plan.
type candidate struct {
	Policy
	address string // canonical EntityID of an IP policy
	plan    Plan
}

// NewCatalog creates a snapshot of the configuration. The texts and choices of its arguments must not change
// afterwards. Built-in actions are included even without a row.
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
		c.byAction[p.ActionCode] = append(c.byAction[p.ActionCode], c.candidate(p))
	}
	for _, list := range c.byAction {
		sorting.Func(list, bySpecificity)
	}
	for _, action := range []string{ResetPassword, VerifyEmail, Register} {
		c.defaults[action] = plan(c.methods, mandatory(action), nil, 0)
	}
	c.fallback = plan(c.methods, nil, []Choice{{Code: TOTP}, {Code: PUSH}, {Code: SMS}, {Code: MAIL}}, 1)
	return c
}

func (c *Catalog) candidate(p Policy) candidate {
	e := candidate{Policy: p, plan: planOf(c.methods, p)}
	e.plan.PolicyID, e.plan.EntityType = p.ID, p.EntityType
	if p.EntityType == IP {
		e.address = canonicalIP(p.EntityID)
	}
	return e
}

func bySpecificity(a, b candidate) int {
	return cmp.Or(cmp.Compare(rank(a.EntityType), rank(b.EntityType)), cmp.Compare(a.ID, b.ID))
}

// With returns the catalog with a policy instead of the one of its action, type and entity.
func (c *Catalog) With(p Policy) *Catalog {
	next := *c
	next.byAction = maps.Clone(c.byAction)
	list := slices.DeleteFunc(slices.Clone(c.byAction[p.ActionCode]), func(o candidate) bool {
		return o.Type == p.Type && o.EntityType == p.EntityType && o.EntityID == p.EntityID
	})
	list = append(list, c.candidate(p))
	sorting.Func(list, bySpecificity)
	next.byAction[p.ActionCode] = list
	return &next
}

// Method returns the method with a code.
func (c *Catalog) Method(code string) (Method, bool) {
	m, ok := c.methods[code]
	return m, ok
}

// Action returns the action with a code: the stored one, else the built-in one.
func (c *Catalog) Action(code string) (Action, bool) {
	a, ok := c.actions[code]
	return a, ok
}

// ActionTitle returns the title of an action in a language (D-GEN-16), or the code if it has none.
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

// rank orders the kinds of entities, the most specific first.
func rank(t EntityType) int {
	if i := slices.Index([]EntityType{UserID, IP, General}, t); i >= 0 {
		return i
	}
	return unknownRank
}

// canonicalIP returns the one form of an address, so that an IPv4 address matches its IPv6 form; "" for any other
// text.
func canonicalIP(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return ""
	}
	return a.Unmap().WithZone("").String()
}
