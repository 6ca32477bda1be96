package mfa

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"castellan/domain/kit/code"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Limits of the configuration's numbers and names.
const (
	// MaxCodeMs bounds the lifetime of a sent OTP (D-2FA-04, SEC-07).
	MaxCodeMs = 600_000
	// MaxMethodMs bounds the lifetime of any method, since a challenge lives as long as its longest method.
	MaxMethodMs = 24 * 60 * 60_000
	// MaxInstantMs is the last instant that a client's Date can hold.
	MaxInstantMs = 8_640_000_000_000_000

	maxNameChars     = 200
	maxTemplateChars = 64
)

// CheckCode returns INVALID_FIELD for text that cannot be a method's or an action's code. Any well-formed code may be
// added; one of no known kind is stored and never offered.
func CheckCode(field, text string) error { return fault.All(code.Check(field, text)) }

// Times bounds the times of methods (D-MFA-13). Zero values mean the defaults.
type Times struct {
	LeastMs     int64 // the shortest life of a method but 0; 10 000
	ChallengeMs int64 // the life of a challenge whose methods have none of their own; 600 000
}

func (t Times) least() int64 { return cmp.Or(t.LeastMs, 10_000) }

// renewal returns the latest start of renewals for a method with this lifetime.
func (t Times) renewal(expireMs int64) int64 {
	return cmp.Or(expireMs, t.ChallengeMs, MaxCodeMs)
}

// Check returns INVALID_FIELD with every fault of a method to be written.
func (m Method) Check(t Times) error {
	ps, most := fault.Problems(code.Check("methodCode", m.Code)), t.renewal(m.ExpireMs)
	if !m.checkExpiry(&ps, t) { // without a valid lifetime the renewal cannot be checked
		most = MaxMethodMs
	}
	within(&ps, "renewStartMs", m.RenewStartMs, 0, most)
	return fault.All(ps)
}

func (m Method) checkExpiry(ps *fault.Problems, t Times) (valid bool) {
	most := int64(MaxMethodMs)
	if name, ok := m.Name(); ok && name.Sent() {
		most = MaxCodeMs
	}
	valid = m.ExpireMs == 0 || t.least() <= m.ExpireMs && m.ExpireMs <= most
	ps.Require(valid, "expireMs", "must be 0 or from %d to %d", t.least(), most)
	return valid
}

// within requires a number to be in a range, and reports whether it is.
func within(ps *fault.Problems, field string, n, least, most int64) bool {
	valid := least <= n && n <= most
	ps.Require(valid, field, "must be from %d to %d", least, most)
	return valid
}

// Check returns INVALID_FIELD with every fault of an action to be written.
func (a Action) Check() error {
	ps := fault.Problems(code.Check("actionCode", a.Code))
	readable(&ps, "title", a.Title.check())
	readable(&ps, "infoTableHeaders", a.Headers.check())
	return fault.All(ps)
}

// readable adds the problem of a text.
func readable(ps *fault.Problems, field string, err error) { ps.Require(err == nil, field, "%v", err) }

// Check returns INVALID_FIELD with every fault of a policy to be written;
// methods and action must exist in c.
func (p Policy) Check(c *Catalog) error {
	ps := p.formProblems()
	_, known := c.Action(p.ActionCode)
	ps.Require(known || !code.Valid(p.ActionCode), "actionCode", "there is no such action")
	p.checkGrave(&ps, c.grave)
	for _, ch := range p.Methods {
		_, known := c.Method(ch.Code)
		ps.Require(known || !code.Valid(ch.Code), "methods", "there is no method %.64q", ch.Code)
	}
	return fault.All(ps)
}

// CheckForm makes the checks that need no other record: those of Check, except for the existence of the action and
// the methods.
func (p Policy) CheckForm() error { return fault.All(p.formProblems()) }

func (p Policy) formProblems() fault.Problems {
	ps := fault.Problems(code.Check("actionCode", p.ActionCode))
	p.checkName(&ps)
	within(&ps, "expireAt", p.ExpireAt, 0, MaxInstantMs)
	p.checkMethods(&ps)
	if within(&ps, "remember", int64(p.RememberDays), 0, MaxRememberDays) {
		p.checkGrave(&ps, grave)
	}
	p.checkPasskeys(&ps)
	if n := int64(len(p.Methods)); n > 0 {
		within(&ps, "required", int64(p.Required), 1, n)
		if p.Preferred != nil {
			within(&ps, "preffered", int64(*p.Preferred), 0, n)
		}
	}
	return ps
}

func (p Policy) checkName(ps *fault.Problems) {
	switch {
	case strings.TrimSpace(p.Name) == "":
		ps.Require(false, "name", "must not be blank")
	case utf8.RuneCountInString(p.Name) > maxNameChars:
		ps.Require(false, "name", "must have at most %d characters", maxNameChars)
	default:
		ps.Require(legible.Valid(p.Name), "name", "must not contain control characters")
	}
}

// checkPasskeys refuses passkeyAlone where it would have no meaning: only a login has no other factor, and a login by
// a passkey alone signs no intent. It refuses phishingResistant for the actions that prove a phone or an address: a
// recovery must work without a passkey.
func (p Policy) checkPasskeys(ps *fault.Problems) {
	switch {
	case p.PasskeyAlone && p.ActionCode != Login:
		ps.Require(false, "passkeyAlone", "is for LOGIN only")
	case p.PhishingResistant && len(mandatory(p.ActionCode)) > 0:
		ps.Require(false, "phishingResistant", "is not supported for this action")
	default:
		ps.Require(!p.PasskeyAlone || !p.SignIntent, "passkeyAlone", "cannot be combined with intent required")
	}
}

// checkMethods adds the first problem of the methods.
func (p Policy) checkMethods(ps *fault.Problems) {
	ps.Require(len(p.Methods) > 0, "methods", "must name at least one method")
	seen := map[string]bool{}
	for _, ch := range p.Methods {
		switch {
		case !code.Valid(ch.Code):
			ps.Require(false, "methods", "%.64q cannot be a methodCode", ch.Code)
		case seen[ch.Code]:
			ps.Require(false, "methods", "%s is named twice", ch.Code)
		case ch.Code == TOTP && ch.Template != "":
			ps.Require(false, "methods", "TOTP has no template: nothing is sent")
		case utf8.RuneCountInString(ch.Template) > maxTemplateChars ||
			strings.ContainsFunc(ch.Template, unicode.IsControl):
			ps.Require(false, "methods", "%.64q cannot be a templateName", ch.Template)
		default:
			seen[ch.Code] = true
			continue
		}
		return
	}
}

// MaxRememberDays bounds how long a client is remembered.
const MaxRememberDays = 365

// Administration guards the sensitive endpoints of administrators (mfa.guard_administration).
const Administration = "ADMINISTRATION"

// grave lists the built-in actions that move money or change credentials. A client is remembered for them only if the
// policy has RememberAnyway.
var grave = []string{ResetPassword, UpdatePassword, TOTPSetup, TOTPDeactivate, GeofilterAdd, GeofilterRemove,
	VerifyEmail, DeviceAdd, DeviceRemove, ApproveRequest, Register, Withdraw, Administration}

// checkGrave refuses the option remember for those actions.
func (p Policy) checkGrave(ps *fault.Problems, actions []string) {
	ps.Require(p.RememberDays <= 0 || p.RememberAnyway || !slices.Contains(actions, p.ActionCode), "remember",
		"is refused for actions that move money or change credentials, unless rememberAnyway is true")
}
