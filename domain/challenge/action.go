package challenge

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/commit"
	"castellan/domain/fault"
)

// Result is what an action came to: the one outcome that the complete
// response, the socket and the result endpoint all show (D-SOCK-07). It is
// stored sealed, because it may hold tokens and secrets.
type Result struct {
	Success bool            `json:"success"`
	Code    fault.Code      `json:"code,omitempty"`    // of a failure
	Message string          `json:"message,omitempty"` // of a failure
	Data    json.RawMessage `json:"data,omitempty"`    // a JSON object; absent when the action yields none
	// Headers are the tokens the starter gets: x-auth or ot-auth.
	Headers map[string]string `json:"headers,omitempty"`
	// UserID, SessionID and SV name the session a LOGIN made: its tokens are
	// handed out only while it lives (D-AUTH-11).
	UserID    string `json:"userId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	SV        int64  `json:"sv,omitempty"`
}

// Failed is the result of a refused action.
func Failed(err error) Result {
	r := Result{Code: fault.CodeOf(err), Message: "the action could not be carried out"}
	if e, ok := err.(*fault.Error); ok {
		r.Message = e.Message
	}
	return r
}

// Execution is what an action is given to run with.
type Execution struct {
	Challenge Challenge
	Command   []byte // as given to Start
	Now       time.Time
	Prepared  any // what Prepare of the action returned
}

// Action is the code behind an action code. Exactly one of Build and Exec is
// set. Either is called once per challenge as far as anybody can see: its
// effect and its outcome commit together (D-2FA-16).
type Action struct {
	Code string
	Flow Flow
	// KeepsFilter is for an action that changes the user's geographic filter:
	// once it runs, its challenge is judged by the filter as it was at the start,
	// so that the starter learns what became of it (D-GEO-02).
	KeepsFilter bool
	// Build is for an action that only writes rows: it returns the outcome and
	// the writes, which commit together with the challenge's completion. It
	// must not block for long.
	Build func(ctx context.Context, x Execution) (Result, []commit.Write, error)
	// Prepare, which may accompany Exec, does beforehand what needs time and no
	// transaction: drawing a picture, say. Nothing of it is kept unless Exec keeps
	// it, and its errors are those of Exec.
	Prepare func(ctx context.Context, x Execution) (any, error)
	// Exec runs inside a transaction that every store called with ctx joins.
	// A *fault.Error is a refusal: everything is rolled back and it becomes an
	// outcome with success false. Any other error is tried again.
	Exec func(ctx context.Context, x Execution) (Result, error)
	// Describe, where it is set, tells of a command what whoever approves it is
	// shown, by the keys of the action's infoTableHeaders (D-2FA-25).
	Describe func(command []byte) map[string]string
}

// Actions are the registered actions by code.
type Actions map[string]Action

// Register adds an action; a second one with the code, or one with neither
// or both of Build and Exec, is a programming error and panics.
func (as Actions) Register(a Action) {
	if _, twice := as[a.Code]; twice || (a.Build == nil) == (a.Exec == nil) || a.Prepare != nil && a.Exec == nil {
		panic(fmt.Sprintf("challenge: action %q is registered twice or is incomplete", a.Code))
	}
	if a.Flow == "" {
		a.Flow = FlowSession
	}
	as[a.Code] = a
}
