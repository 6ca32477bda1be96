package mfa

import (
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
)

// Planned is a method that a challenge may offer. Times are as configured.
type Planned struct {
	Code       string
	Name       challenge.Name
	Template   string
	LifetimeMs int64 // 0: as long as the challenge
	RenewMs    int64 // 0: cannot be renewed
	Mandatory  bool  // must be among the completed ones
}

// Plan holds the methods that an action requires of a user. A Plan shares memory with its Catalog: do not change it.
type Plan struct {
	PolicyID   int64 // 0: the built-in default
	EntityType EntityType
	Required   int // distinct completions
	Methods    []Planned
	Mandatory  []challenge.Name
	// NumberMatching and the others are copied from the policy.
	NumberMatching, SignIntent, PhishingResistant, PasskeyAlone bool
	RememberDays                                                int // also of the policy
}

// Plan returns the plan for an action. Among the policies that have not expired it uses the one for the user, else
// the one for the address, else the general one. Without any it uses the built-in default (D-2FA-12). It omits
// methods without a configuration and codes of no known kind. PUSH and PUSH_OTP are one kind, of which the first
// listed counts (D-2FA-08).
//
// Some actions prove the possession of particular methods. These are added to any policy and must all be completed.
// Others are offered only if the policy requires more completions (D-PWD-02, D-2FA-27).
func (c *Catalog) Plan(now time.Time, action, userID, ip string) Plan {
	if p := c.choose(now, action, userID, ip); p != nil {
		return p.plan
	}
	if p, ok := c.defaults[action]; ok {
		return p
	}
	return c.fallback
}

// PlanOf returns the plan of a policy, which need not be stored.
func (c *Catalog) PlanOf(p Policy) Plan {
	return planOf(c.methods, p)
}

// Offer returns the part of the plan that an account can complete, in the order of the policy; owned reports whether
// it owns a method. MFA_NOT_AVAILABLE when that is fewer methods than required or lacks a mandatory one. The
// requirement is never lowered to the available methods (D-2FA-11).
func (p Plan) Offer(owned func(challenge.Name) bool) ([]Planned, error) {
	offer := make([]Planned, 0, len(p.Methods))
	for _, m := range p.Methods {
		if owned(m.Name) {
			offer = append(offer, m)
		}
	}
	if len(offer) < p.Required || len(p.missing(offer)) > 0 {
		return nil, fault.New(fault.MFANotAvailable, "the account does not have enough methods for this action")
	}
	return offer, nil
}

// Lists reports whether a method is one of the plan.
func (p Plan) Lists(n challenge.Name) bool {
	return slices.ContainsFunc(p.Methods, func(m Planned) bool { return m.Name == n })
}

func (p Plan) missing(offer []Planned) (names []challenge.Name) {
	for _, n := range p.Mandatory {
		if !slices.ContainsFunc(offer, func(m Planned) bool { return m.Name == n }) {
			names = append(names, n)
		}
	}
	return names
}

// mandatory lists the methods that an action must prove: phone and mail for a password reset and a sign-up, mail for
// a mail verification. No policy can omit them.
func mandatory(action string) []challenge.Name {
	switch action {
	case ResetPassword, Register:
		return []challenge.Name{challenge.SMS, challenge.MAIL}
	case VerifyEmail:
		return []challenge.Name{challenge.MAIL}
	}
	return nil
}

// planOf returns the plan of a policy with its options. One that must resist phishing requires a push.
func planOf(methods map[string]Method, p Policy) Plan {
	must := mandatory(p.ActionCode)
	if p.PhishingResistant {
		must = append(must, challenge.PUSH)
	}
	next := plan(methods, must, p.Methods, p.Required)
	next.NumberMatching, next.SignIntent = p.NumberMatching, p.SignIntent
	next.PhishingResistant, next.PasskeyAlone = p.PhishingResistant, p.PasskeyAlone
	next.RememberDays = p.RememberDays
	return next
}

// ByPasskey returns the plan of a login by a passkey, which needs no further method: the passkey is its push.
func (p Plan) ByPasskey() Plan {
	p.Required, p.Mandatory = 1, nil
	p.Methods = []Planned{{Code: PUSH, Name: challenge.PUSH}}
	return p
}

// plan computes a policy's plan. It appends missing mandatory methods.
func plan(methods map[string]Method, must []challenge.Name, choices []Choice, required int) Plan {
	p := Plan{EntityType: General, Required: max(required, len(must)), Mandatory: must}
	for _, ch := range slices.Concat(choices, choicesOf(must)) {
		m, configured := methods[ch.Code]
		name, known := m.Name()
		if !configured || !known || slices.ContainsFunc(p.Methods, func(o Planned) bool { return o.Name == name }) {
			continue
		}
		needed := slices.Contains(must, name)
		if len(must) > 0 && !needed && p.Required <= len(must) {
			continue
		}
		o := Planned{Code: m.Code, Name: name, Template: ch.Template, LifetimeMs: m.ExpireMs, Mandatory: needed}
		if name.Sent() {
			o.RenewMs = m.RenewStartMs
		}
		p.Methods = append(p.Methods, o)
	}
	return p
}

func choicesOf(names []challenge.Name) []Choice {
	out := make([]Choice, len(names))
	for i, n := range names {
		out[i] = Choice{Code: string(n)}
	}
	return out
}

// Verdict is the role of a policy in the choice of a plan.
type Verdict string

// The verdicts.
const (
	Chosen      Verdict = "CHOSEN"
	Outranked   Verdict = "OUTRANKED"    // a more specific policy was chosen
	Expired     Verdict = "EXPIRED"      // its expireAt has passed
	OtherEntity Verdict = "OTHER_ENTITY" // for another user or address
	UnknownType Verdict = "UNKNOWN_TYPE" // not COMMON
)

// Candidate is a policy considered for a plan.
type Candidate struct {
	Policy  Policy
	Verdict Verdict
}

// Candidates explains the choice of Plan: every policy of the action, the most specific first.
func (c *Catalog) Candidates(now time.Time, action, userID, ip string) []Candidate {
	out := []Candidate{}
	taken, address := false, canonicalIP(ip)
	for i := range c.byAction[action] {
		p := &c.byAction[action][i]
		v := p.judge(now, userID, address)
		if v == Chosen && taken {
			v = Outranked
		}
		taken = taken || v == Chosen
		out = append(out, Candidate{p.Policy, v})
	}
	return out
}

func (c *Catalog) choose(now time.Time, action, userID, ip string) *candidate {
	list := c.byAction[action]
	if len(list) == 0 {
		return nil
	}
	address := canonicalIP(ip)
	for i := range list {
		if list[i].judge(now, userID, address) == Chosen {
			return &list[i]
		}
	}
	return nil
}
