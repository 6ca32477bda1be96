// Package wire holds the response shapes that several sections share: the challenge (section
// 2.1 of the interface) with its tokens, and the balances of an account (section 2.5).
package wire

import (
	"time"

	"castellan/domain/factor/challenge"
	"castellan/http/rest"
)

// ChallengeAnswer is the answer of every endpoint that starts or renews a
// challenge (D-2FA-31).
type ChallengeAnswer struct {
	Challenge Challenge `json:"challenge"`
	// ExecResult is present if the start completed the challenge, because the client is remembered.
	ExecResult *ExecResult `json:"execResult,omitempty" doc:"extension: present if the start completed the challenge"`
}

// Challenge is a second-factor challenge.
type Challenge struct {
	ChallengeID string   `json:"challengeId"`
	TS          int64    `json:"ts" doc:"creation, epoch ms"`
	Status      string   `json:"status" enum:"PENDING,COMPLETED"`
	Expire      int64    `json:"expire" doc:"lifetime in seconds"`
	MethodList  []Method `json:"methodList"`
	// RememberDays is present if the client can be remembered.
	RememberDays int `json:"rememberDays,omitempty" example:"30" doc:"extension: days for which complete can remember"`
}

// Method is one method of a challenge.
type Method struct {
	ID         string         `json:"id"`
	Name       challenge.Name `json:"name"`
	Expire     int64          `json:"expire" doc:"lifetime in seconds; after a renewal, seconds left"`
	RenewStart int64          `json:"renewStart" doc:"seconds after creation at which renewal becomes possible; 0: never"`
	Hint       string         `json:"hint,omitempty" doc:"partly masked destination"`
	// MatchNumber is present if the policy requires number matching.
	MatchNumber string `json:"matchNumber,omitempty" doc:"extension: a push is approved with APPROVED:<number>"`
	// Completed is present if it is true.
	Completed bool `json:"completed,omitempty" doc:"extension: completed at the start, because the client is remembered"`
	// WebAuthn is present on the push of an account with a passkey.
	WebAuthn *rest.JSON `json:"webauthn,omitempty" schema:"PasskeyRequest" doc:"extension: a passkey may approve the push"`
}

func (Method) SchemaName() string { return "ChallengeMethod" }

// Started is the answer of a starter: the challenge, and its token in the
// header p-auth (D-AUTH-04).
func Started(s challenge.Started) rest.Reply[ChallengeAnswer] {
	c := shape(s.Challenge)
	for _, m := range s.Challenge.Methods {
		one := method(m, m.LifetimeMs)
		if m.Name == challenge.PUSH && s.WebAuthn != nil {
			one.WebAuthn = new(rest.JSON(s.WebAuthn))
		}
		c.MethodList = append(c.MethodList, one)
	}
	if !s.Challenge.Remembered() {
		c.RememberDays = s.Challenge.RememberDays
	}
	out := rest.Reply[ChallengeAnswer]{Body: ChallengeAnswer{Challenge: c},
		Headers: []rest.Header{{Name: "p-auth", Value: s.PAuth}}}
	if s.Result != nil {
		out.Body.ExecResult, out.Headers = Exec(*s.Result, true), append(out.Headers, Tokens(*s.Result)...)
	}
	return out
}

// Renewed is the answer of a renewal: the open methods, each with its remaining seconds. They
// are those at the renewal, unless the challenge ends before the renewed method (D-2FA-23).
func Renewed(s challenge.Challenge, methodID string, now time.Time) ChallengeAnswer {
	c := shape(s)
	if m, _ := s.Method(methodID); m.ExpiresAt < s.ExpiresAt && m.ID != "" {
		now = time.UnixMilli(m.ExpiresAt - m.LifetimeMs) // the answer comes a moment later
	}
	for _, m := range s.Methods {
		if m.Order == 0 {
			c.MethodList = append(c.MethodList, method(m, max(0, m.ExpiresAt-now.UnixMilli())))
		}
	}
	return ChallengeAnswer{Challenge: c}
}

func shape(s challenge.Challenge) Challenge {
	status := "PENDING"
	if s.Completed() {
		status = "COMPLETED"
	}
	return Challenge{ChallengeID: s.ID, TS: s.CreatedAt, Status: status, Expire: (s.ExpiresAt - s.CreatedAt) / 1000,
		MethodList: make([]Method, 0, len(s.Methods))}
}

// method rounds so that no client is shown a value that would be refused:
// lifetimes down (at least 1), the renewal gate up (D-2FA-02).
func method(m challenge.Method, lifetimeMs int64) Method {
	expire := lifetimeMs / 1000
	if expire == 0 && lifetimeMs > 0 {
		expire = 1
	}
	return Method{ID: m.ID, Name: m.Name, Expire: expire, RenewStart: (m.RenewMs + 999) / 1000, Hint: m.Hint,
		MatchNumber: m.Number, Completed: m.Remembered != ""}
}

// ExecResult is the outcome of a completed challenge's action (section 4.1 of the
// interface).
type ExecResult struct {
	Success bool   `json:"success"`
	Code    string `json:"code,omitempty" doc:"error code of a failed action" example:"RECORD_ALREADY_EXIST"`
	Message string `json:"message,omitempty"`
	Data    any    `json:"data,omitempty" schema:"ActionData"`
}

// Exec shows a result as execResult. A caller who did not start the challenge sees only success (D-2FA-18).
func Exec(r challenge.Result, starter bool) *ExecResult {
	e := &ExecResult{Success: r.Success}
	if starter {
		e.Code, e.Message = string(r.Code), r.Message
		if len(r.Data) > 0 {
			e.Data = r.Data
		}
	}
	return e
}

// Tokens are the headers of a result, for the client that started the challenge.
func Tokens(r challenge.Result) []rest.Header {
	var hs []rest.Header
	for _, name := range []string{"x-auth", "ot-auth", "castellan-grant"} {
		if v := r.Headers[name]; v != "" {
			hs = append(hs, rest.Header{Name: name, Value: v})
		}
	}
	return hs
}
