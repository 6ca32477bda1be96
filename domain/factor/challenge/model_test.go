package challenge_test

import (
	"fmt"
	"math/bits"
	"time"

	"castellan/domain/factor/challenge"
)

// event is something that happened to factor f.
type event struct {
	kind string // right, wrong, deny, renew, close, abort, finish
	f    int
	at   int64
}

// model repeats section 3.1 of the interface and the decisions D-2FA-05, 09, 10, 13–15 and 20–22 in the slow way. Its
// only state is the list of events, from which it derives every answer.
type model struct {
	r          challenge.Rules
	start, end int64
	required   int
	factors    []challenge.Method // as they were at the start
	log        []event
	spent      map[bool][]int64 // wrong values of all challenges; true for TOTP
}

func (m *model) add(kind string, f int, at int64) { m.log = append(m.log, event{kind, f, at}) }

// countEvents counts an event of a factor: all of them, and those since its OTP was created.
func (m *model) countEvents(kind string, f int) (all, since int) {
	for _, e := range m.log {
		switch {
		case e.f == f && e.kind == kind:
			all, since = all+1, since+1
		case e.f == f && e.kind == "renew":
			since = 0
		}
	}
	return all, since
}

func (m *model) done(f int) bool { n, _ := m.countEvents("right", f); return n > 0 }

func (m *model) state(now int64) string {
	state, right, must, wrong := "pending", uint(0), uint(0), 0
	for f := range m.factors {
		if m.factors[f].Mandatory {
			must |= 1 << f
		}
	}
	for _, e := range m.log {
		switch e.kind {
		case "right":
			if right |= 1 << e.f; bits.OnesCount(right) >= m.required && right&must == must {
				state = "executing"
			}
		case "wrong":
			if wrong++; wrong == m.r.ChallengeAttempts {
				state = "closed"
			}
		case "renew":
		default:
			state = map[string]string{"deny": "denied", "finish": "done", "close": "closed", "abort": "closed"}[e.kind]
		}
	}
	if state == "pending" && now >= m.end {
		return "expired"
	}
	return state
}

// until returns when a factor ends, and when its OTP was created.
func (m *model) until(f int) (ends, made int64) {
	ends, made = m.factors[f].ExpiresAt, m.factors[f].MadeAt
	for _, e := range m.log {
		full := min(e.at+m.factors[e.f].LifetimeMs, m.end)
		switch sent := m.factors[f].Name.Sent(); {
		case e.kind == "right" && e.f == f:
			return ends, made
		case e.kind != "renew":
		case e.f == f:
			ends, made = full, e.at
		case sent && made+m.r.CodeMaxAgeMs < full:
			ends = max(ends, made+m.r.CodeMaxAgeMs)
		default:
			ends = max(ends, full)
		}
	}
	return ends, made
}

// wait tries, one after the other, the instants at which a spent value leaves.
func (m *model) wait(now int64, totp bool) time.Duration {
	limit, window := m.r.OTPBudget, m.r.OTPBudgetWindowMs
	if totp {
		limit, window = m.r.TOTPBudget, m.r.TOTPBudgetWindowMs
	}
	counting := func(then int64) (n int) {
		for _, at := range m.spent[totp] {
			if at > then-window {
				n++
			}
		}
		return n
	}
	best := now
	for i := 0; counting(best) >= limit; i++ {
		best = max(best, m.spent[totp][i]+window)
	}
	return time.Duration(best-now) * time.Millisecond
}

func (m *model) complete(now int64, f int, verb string) string {
	state, name := m.state(now), m.factors[f].Name
	_, wrong := m.countEvents("wrong", f)
	ends, _ := m.until(f)
	switch {
	case state == "expired":
		return "CHALLENGE_EXPIRED"
	case state == "executing", m.done(f) && (state == "pending" || state == "done"):
		return "METHOD_ALREADY_COMPLETED"
	case state != "pending":
		return "CHALLENGE_CLOSED"
	case verb == "deny":
		m.add("deny", f, now)
		return "denied"
	case wrong == m.r.MethodAttempts:
		return "METHOD_LOCKED"
	case now >= ends:
		return "METHOD_EXPIRED"
	case name == challenge.PUSH && verb != "right":
		return "DEVICE_SIGNATURE_INVALID"
	}
	if d := m.wait(now, name == challenge.TOTP); d > 0 && name != challenge.PUSH {
		return fmt.Sprintf("RATE_LIMITED %s", d)
	}
	if verb == "right" {
		m.add("right", f, now)
		return m.state(now)
	}
	m.add("wrong", f, now)
	m.spent[name == challenge.TOTP] = append(m.spent[name == challenge.TOTP], now)
	left := m.r.ChallengeAttempts
	for f := range m.factors {
		all, _ := m.countEvents("wrong", f)
		left -= all
	}
	return fmt.Sprintf("OTP_INVALID %d", min(left, m.r.MethodAttempts-wrong-1))
}

func (m *model) renew(now int64, f int) string {
	x, gate := m.factors[f], m.start+m.factors[f].RenewMs
	renewals, _ := m.countEvents("renew", f)
	switch state := m.state(now); {
	case state == "expired":
		return "CHALLENGE_EXPIRED"
	case state != "pending":
		return "CHALLENGE_CLOSED"
	case m.done(f):
		return "METHOD_ALREADY_COMPLETED"
	case x.Name == challenge.TOTP || x.Name == challenge.PUSH || x.RenewMs == 0:
		return "RENEW_NOT_SUPPORTED"
	case m.end-now < m.r.RenewCutoffMs || renewals == m.r.MaxRenewals:
		return "RENEW_CLOSED"
	case now < gate:
		return fmt.Sprintf("RENEW_TOO_EARLY %s", time.Duration(gate-now)*time.Millisecond)
	}
	m.add("renew", f, now)
	return "pending"
}
