package mfa

import (
	"slices"

	"castellan/domain/kit/code"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// MethodChange is a partial update of a method; nil is unchanged.
type MethodChange struct {
	Code         string
	ExpireMs     *int64
	RenewStartMs *int64
}

// Check makes the checks that need no stored record: INVALID_FIELD for a faulty field and for an empty change
// (D-MFA-01). Apply checks the relation of the two times.
func (c MethodChange) Check(t Times) error {
	if c.ExpireMs == nil && c.RenewStartMs == nil {
		return nothingSent("expireMs, renewStartMs")
	}
	ps, m := fault.Problems(code.Check("methodCode", c.Code)), c.merge(Method{Code: c.Code})
	m.checkExpiry(&ps, t)
	within(&ps, "renewStartMs", m.RenewStartMs, 0, MaxMethodMs)
	return fault.All(ps)
}

// Apply returns the changed method after checking all of it (D-MFA-13). INVALID_FIELD when it is unchanged or not
// valid.
func (c MethodChange) Apply(m Method, t Times) (Method, error) {
	next := c.merge(m)
	if next == m {
		return m, nothingToChange()
	}
	return next, next.Check(t)
}

func (c MethodChange) merge(m Method) Method {
	set(&m.ExpireMs, c.ExpireMs)
	set(&m.RenewStartMs, c.RenewStartMs)
	return m
}

// ActionChange is a partial update of an action; nil is unchanged.
type ActionChange struct {
	Code    string
	Title   *Text
	Headers *Headers
}

// Check makes the checks that need no stored record, like MethodChange.Check.
func (c ActionChange) Check() error {
	if c.Title == nil && c.Headers == nil {
		return nothingSent("title, infoTableHeaders")
	}
	ps := fault.Problems(code.Check("actionCode", c.Code))
	if c.Title != nil {
		readable(&ps, "title", c.Title.check())
	}
	if c.Headers != nil {
		readable(&ps, "infoTableHeaders", c.Headers.check())
	}
	return fault.All(ps)
}

// Apply returns the changed action, like MethodChange.Apply.
func (c ActionChange) Apply(a Action) (Action, error) {
	next := a
	set(&next.Title, c.Title)
	set(&next.Headers, c.Headers)
	if next.Equal(a) {
		return a, nothingToChange()
	}
	return next, fault.Since(a.Check(), next.Check(), map[string]bool{"title": !next.Title.Equal(a.Title),
		"infoTableHeaders": !next.Headers.Equal(a.Headers)})
}

// PolicyChange is a partial update of a COMMON policy; nil is unchanged.
type PolicyChange struct {
	ID        int64
	Name      *string
	ExpireAt  *int64
	Required  *int
	Preferred *int
	Methods   *[]Choice
	// NumberMatching is an extension of the interface.
	NumberMatching                  *bool
	SignIntent                      *bool // these also
	PhishingResistant, PasskeyAlone *bool
	// RememberDays and RememberAnyway are extensions, too.
	RememberDays   *int
	RememberAnyway *bool
}

// Check is like MethodChange.Check. Apply checks what depends on other fields of the policy.
func (c PolicyChange) Check() error {
	if c == (PolicyChange{ID: c.ID}) {
		return nothingSent("name, expireAt, required, preffered, methods")
	}
	var ps fault.Problems
	if c.Name != nil && legible.Valid(*c.Name) { // else Apply decides: a stored name is kept
		Policy{Name: *c.Name}.checkName(&ps)
	}
	if c.ExpireAt != nil {
		within(&ps, "expireAt", *c.ExpireAt, 0, MaxInstantMs)
	}
	ps.Require(c.Required == nil || *c.Required >= 1, "required", "must be at least 1")
	ps.Require(c.Preferred == nil || *c.Preferred >= 0, "preffered", "must not be negative")
	if c.RememberDays != nil {
		within(&ps, "remember", int64(*c.RememberDays), 0, MaxRememberDays)
	}
	if c.Methods != nil {
		Policy{Methods: *c.Methods}.checkMethods(&ps)
	}
	return fault.All(ps)
}

// Apply returns the changed policy after checking all of it (D-MFA-04). INVALID_FIELD when it is unchanged or not
// valid.
func (c PolicyChange) Apply(p Policy, in *Catalog) (Policy, error) {
	next := p
	set(&next.Name, c.Name)
	set(&next.ExpireAt, c.ExpireAt)
	set(&next.Required, c.Required)
	set(&next.Methods, c.Methods)
	set(&next.NumberMatching, c.NumberMatching)
	set(&next.SignIntent, c.SignIntent)
	set(&next.RememberDays, c.RememberDays)
	set(&next.RememberAnyway, c.RememberAnyway)
	set(&next.PhishingResistant, c.PhishingResistant)
	set(&next.PasskeyAlone, c.PasskeyAlone)
	if c.Preferred != nil {
		next.Preferred = c.Preferred
	}
	if next.Equal(p) {
		return p, nothingToChange()
	}
	return next, fault.Since(p.Check(in), next.Check(in), map[string]bool{"name": next.Name != p.Name,
		"expireAt": next.ExpireAt != p.ExpireAt, "required": next.Required != p.Required,
		"preffered": next.Preference() != p.Preference(), "methods": !slices.Equal(next.Methods, p.Methods),
		"remember":          next.RememberDays != p.RememberDays || next.RememberAnyway != p.RememberAnyway,
		"phishingResistant": next.PhishingResistant != p.PhishingResistant,
		"passkeyAlone":      next.PasskeyAlone != p.PasskeyAlone || next.SignIntent != p.SignIntent})
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func nothingSent(fields string) error {
	return fault.New(fault.InvalidField, "at least one of these fields must be sent: %s", fields)
}

func nothingToChange() error { return fault.New(fault.InvalidField, "nothing to change") }
