package mfa

import (
	"cmp"
	"fmt"
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
	ps := code.Check("methodCode", m.Code)
	before := len(ps)
	if ps = m.expireProblem(ps, t); len(ps) > before { // without a valid lifetime the renewal cannot be checked
		return fault.All(m.renewProblem(ps, MaxMethodMs))
	}
	return fault.All(m.renewProblem(ps, t.renewal(m.ExpireMs)))
}

func (m Method) expireProblem(ps []fault.Problem, t Times) []fault.Problem {
	most := int64(MaxMethodMs)
	if name, ok := m.Name(); ok && name.Sent() {
		most = MaxCodeMs
	}
	if m.ExpireMs == 0 || t.least() <= m.ExpireMs && m.ExpireMs <= most {
		return ps
	}
	return append(ps, fault.Problem{Field: "expireMs",
		Message: fmt.Sprintf("must be 0 or from %d to %d", t.least(), most)})
}

func (m Method) renewProblem(ps []fault.Problem, most int64) []fault.Problem {
	return between(ps, "renewStartMs", m.RenewStartMs, 0, most)
}

func between(ps []fault.Problem, field string, n, least, most int64) []fault.Problem {
	if least <= n && n <= most {
		return ps
	}
	return append(ps, fault.Problem{Field: field, Message: fmt.Sprintf("must be from %d to %d", least, most)})
}

// Check returns INVALID_FIELD with every fault of an action to be written.
func (a Action) Check() error {
	ps := code.Check("actionCode", a.Code)
	ps = textProblem(ps, "title", a.Title.check())
	return fault.All(textProblem(ps, "infoTableHeaders", a.Headers.check()))
}

func textProblem(ps []fault.Problem, field string, err error) []fault.Problem {
	if err == nil {
		return ps
	}
	return append(ps, fault.Problem{Field: field, Message: err.Error()})
}

// Check returns INVALID_FIELD with every fault of a policy to be written;
// methods and action must exist in c.
func (p Policy) Check(c *Catalog) error {
	ps := p.formProblems()
	if _, ok := c.Action(p.ActionCode); !ok && code.Valid(p.ActionCode) {
		ps = append(ps, fault.Problem{Field: "actionCode", Message: "there is no such action"})
	}
	if p.RememberDays > 0 && !p.RememberAnyway && slices.Contains(c.grave, p.ActionCode) {
		ps = append(ps, graveProblem())
	}
	for _, ch := range p.Methods {
		if _, ok := c.Method(ch.Code); !ok && code.Valid(ch.Code) {
			ps = append(ps, fault.Problem{Field: "methods", Message: fmt.Sprintf("there is no method %.64q", ch.Code)})
		}
	}
	return fault.All(ps)
}

// CheckForm makes the checks that need no other record: those of Check, except for the existence of the action and
// the methods.
func (p Policy) CheckForm() error { return fault.All(p.formProblems()) }

func (p Policy) formProblems() []fault.Problem {
	ps := code.Check("actionCode", p.ActionCode)
	ps = p.nameProblem(ps)
	ps = p.expireProblem(ps)
	ps = p.methodsProblem(ps)
	ps = p.rememberProblem(ps)
	ps = p.passkeyProblem(ps)
	if n := len(p.Methods); n > 0 {
		ps = between(ps, "required", int64(p.Required), 1, int64(n))
		if p.Preferred != nil {
			ps = between(ps, "preffered", int64(*p.Preferred), 0, int64(n))
		}
	}
	return ps
}

func (p Policy) nameProblem(ps []fault.Problem) []fault.Problem {
	switch {
	case strings.TrimSpace(p.Name) == "":
		return append(ps, fault.Problem{Field: "name", Message: "must not be blank"})
	case utf8.RuneCountInString(p.Name) > maxNameChars:
		return append(ps, fault.Problem{Field: "name",
			Message: fmt.Sprintf("must have at most %d characters", maxNameChars)})
	case !legible.Valid(p.Name):
		return append(ps, fault.Problem{Field: "name", Message: "must not contain control characters"})
	}
	return ps
}

// passkeyProblem refuses passkeyAlone where it would have no meaning: only a login has no other factor, and a login by
// a passkey alone signs no intent. It refuses phishingResistant for the actions that prove a phone or an address: a
// recovery must work without a passkey.
func (p Policy) passkeyProblem(ps []fault.Problem) []fault.Problem {
	switch {
	case p.PasskeyAlone && p.ActionCode != Login:
		return append(ps, fault.Problem{Field: "passkeyAlone", Message: "is for LOGIN only"})
	case p.PhishingResistant && len(mandatory(p.ActionCode)) > 0:
		return append(ps, fault.Problem{Field: "phishingResistant", Message: "is not supported for this action"})
	case p.PasskeyAlone && p.SignIntent:
		return append(ps, fault.Problem{Field: "passkeyAlone", Message: "cannot be combined with intent required"})
	}
	return ps
}

func (p Policy) expireProblem(ps []fault.Problem) []fault.Problem {
	return between(ps, "expireAt", p.ExpireAt, 0, MaxInstantMs)
}

func (p Policy) methodsProblem(ps []fault.Problem) []fault.Problem {
	fail := func(format string, args ...any) []fault.Problem {
		return append(ps, fault.Problem{Field: "methods", Message: fmt.Sprintf(format, args...)})
	}
	if len(p.Methods) == 0 {
		return fail("must name at least one method")
	}
	seen := map[string]bool{}
	for _, ch := range p.Methods {
		switch {
		case !code.Valid(ch.Code):
			return fail("%.64q cannot be a methodCode", ch.Code)
		case seen[ch.Code]:
			return fail("%s is named twice", ch.Code)
		case ch.Code == TOTP && ch.Template != "":
			return fail("TOTP has no template: nothing is sent")
		case utf8.RuneCountInString(ch.Template) > maxTemplateChars ||
			strings.ContainsFunc(ch.Template, unicode.IsControl):
			return fail("%.64q cannot be a templateName", ch.Template)
		}
		seen[ch.Code] = true
	}
	return ps
}

// MaxRememberDays bounds how long a client is remembered.
const MaxRememberDays = 365

// Administration guards the sensitive endpoints of administrators (mfa.guard_administration).
const Administration = "ADMINISTRATION"

// grave lists the built-in actions that move money or change credentials. A client is remembered for them only if the
// policy has RememberAnyway.
var grave = []string{ResetPassword, UpdatePassword, TOTPSetup, TOTPDeactivate, GeofilterAdd, GeofilterRemove,
	VerifyEmail, DeviceAdd, DeviceRemove, ApproveRequest, Register, Withdraw, Administration}

// rememberProblem checks the option remember.
func (p Policy) rememberProblem(ps []fault.Problem) []fault.Problem {
	before := len(ps)
	ps = between(ps, "remember", int64(p.RememberDays), 0, MaxRememberDays)
	if len(ps) == before && p.RememberDays > 0 && !p.RememberAnyway && slices.Contains(grave, p.ActionCode) {
		ps = append(ps, graveProblem())
	}
	return ps
}

func graveProblem() fault.Problem {
	return fault.Problem{Field: "remember",
		Message: "is refused for actions that move money or change credentials, unless rememberAnyway is true"}
}
