package gateway

import "castellan/domain/factor/challenge"

// Explanation is what the routes say about a request, without a user.
type Explanation struct {
	RouteID  int64  // 0: none
	Detail   string // why a path is ambiguous; "" if it is not, or always is
	Decision string
	Reason   string
	Rows     []challenge.Detail
}

// The decisions and the reasons of an explanation.
const (
	Allow     = "ALLOW"
	NeedsUser = "SESSION"
	Challenge = "CHALLENGE"
	Deny      = "DENY"

	NoRoute       = "NO_ROUTE"
	OfRoute       = "ROUTE"
	OnTrial       = "TRIAL"
	AmbiguousPath = "AMBIGUOUS_PATH"
	HiddenValue   = "HIDDEN_VALUE"
	UnknownHost   = "UNKNOWN_HOST"
)

// Explain returns the decision about a request by the node's routes. It starts nothing. A route on trial explains what
// it would decide, with the decision that holds now.
func (g *Guard) Explain(q Request) Explanation {
	m := g.Routes().Match(q)
	switch {
	case m.Ambiguous:
		x := Explanation{Decision: Deny, Reason: AmbiguousPath, Rows: []challenge.Detail{}}
		if r := m.Respelled; r != nil {
			x.RouteID, x.Detail = r.ID, m.Reader
		}
		return x
	case m.UnknownHost && g.RefuseUnknownHost:
		return Explanation{Decision: Deny, Reason: UnknownHost, Rows: []challenge.Detail{}}
	case m.Route == nil && m.Tried == nil:
		return Explanation{Decision: Allow, Reason: NoRoute, Rows: []challenge.Detail{}}
	}
	r, x := m.Route, Explanation{Decision: Allow, Reason: OfRoute}
	if m.Tried != nil {
		r, x.Reason = m.Tried, OnTrial
	}
	if m.Route != nil {
		x.Decision = map[Mode]string{Guarded: Challenge, Session: NeedsUser, Refuse: Deny}[m.Route.Mode]
	}
	if g.refusal(m) != nil {
		x.Decision = Deny
	}
	x.RouteID = r.ID
	rows, err := m.Values(q, r.Rows)
	if err != nil {
		x.Decision, x.Reason, rows = Deny, HiddenValue, []challenge.Detail{}
	}
	x.Rows = rows
	return x
}
