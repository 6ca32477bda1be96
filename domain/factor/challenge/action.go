package challenge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"castellan/domain/factor/intent"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/pack"
)

// Result is the outcome of an action, as the complete response, the socket and the result endpoint show it
// (D-SOCK-07). It is stored sealed, because it may hold tokens and secrets.
type Result struct {
	Success bool
	Code    fault.Code      // of a failure
	Message string          // of a failure
	Data    json.RawMessage // a JSON object; nil when the action yields none
	// Headers are the tokens for the starter: x-auth or ot-auth.
	Headers map[string]string
	// UserID, SessionID and SV name the session that a LOGIN created. Its tokens are returned only while it is active
	// (D-AUTH-11).
	UserID    string
	SessionID string
	SV        int64
}

// resultForm is the first byte of a stored result.
const resultForm = 1

// AppendBinary appends the stored form, which the engine seals.
func (r Result) AppendBinary(b []byte) ([]byte, error) {
	b = append(slices.Grow(b, 1<<10), resultForm)
	b = pack.String(pack.String(pack.Bool(b, r.Success), r.Code), r.Message)
	b = pack.Int(pack.String(b, r.Data), int64(len(r.Headers)))
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		b = pack.String(pack.String(b, name), r.Headers[name])
	}
	return pack.Int(pack.String(pack.String(b, r.UserID), r.SessionID), r.SV), nil
}

// UnmarshalBinary reads the form of AppendBinary.
func (r *Result) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != resultForm {
		return errors.New("result of an action: not a stored form")
	}
	in := pack.Read(string(data[1:]))
	got := Result{Success: in.Bool(), Code: fault.Code(in.String()), Message: in.String()}
	if data := in.String(); data != "" {
		got.Data = json.RawMessage(data)
	}
	for n := in.Int(); n > 0 && in.More(); n-- {
		if got.Headers == nil {
			got.Headers = map[string]string{}
		}
		name := in.String()
		got.Headers[name] = in.String()
	}
	got.UserID, got.SessionID, got.SV = in.String(), in.String(), in.Int()
	if err := in.Err(); err != nil {
		return fmt.Errorf("result of an action: %w", err)
	}
	*r = got
	return nil
}

// Failed returns the result of a refused action.
func Failed(err error) Result {
	r := Result{Code: fault.CodeOf(err), Message: "the action could not be carried out"}
	if e, ok := err.(*fault.Error); ok {
		r.Message = e.Message
	}
	return r
}

// Execution holds the input of an action.
type Execution struct {
	Challenge Challenge
	Command   []byte // as given to Start
	Now       time.Time
	Prepared  any // result of the action's Prepare
}

// Action is the code of an action. Exactly one of Build and Exec is set. It takes effect once per challenge: its
// effect and its outcome commit together (D-2FA-16).
type Action struct {
	Code string
	Flow Flow
	// KeepsFilter is set for an action that changes the user's geographic filter. Its challenge is then judged by the
	// filter at the start, so the starter can read the outcome (D-GEO-02).
	KeepsFilter bool
	// Build is for an action that only writes rows. It returns the outcome and the writes, which commit together with
	// the challenge's completion. It must not block for long.
	Build func(ctx context.Context, x Execution) (Result, []commit.Write, error)
	// Prepare, which may accompany Exec, does slow work outside the transaction, such as drawing a picture. Its
	// result is lost unless Exec stores it, and its errors are those of Exec.
	Prepare func(ctx context.Context, x Execution) (any, error)
	// Exec runs inside a transaction that every store called with ctx joins. A *fault.Error is a refusal: everything
	// is rolled back and the outcome has success false. Any other error is retried.
	Exec func(ctx context.Context, x Execution) (Result, error)
	// Refused, which may accompany Exec, writes the rows that remain after a refusal by Exec. It runs inside the
	// transaction of the outcome.
	Refused func(ctx context.Context, x Execution, refusal error) error
	// Ended, if set, returns the writes that commit with an end of the challenge without success: a denial, too many
	// wrong values, changed credentials or a failed execution. It may run more than once. Neither expiry nor a newer
	// challenge that takes the place of this one calls it.
	Ended func(ctx context.Context, c Challenge, now time.Time) ([]commit.Write, error)
	// Describe, if set, returns the details of a command for its approver, in order. The intent shows all of them
	// (D-EXT-09), the infoTable those whose key is one of the action's infoTableHeaders (D-2FA-25).
	Describe func(command []byte) []Detail
	// Brief, if set, describes a command in a few words for an SMS, such as "1.5 BTC …wf5mdq".
	Brief func(command []byte) string
	// Reach is for an action of applicants. From the command it returns the destination of a renewed code and the
	// methods that send none. It takes the same steps whatever it finds.
	Reach func(ctx context.Context, command []byte) (Account, []Name, error)
}

// Detail is one value of a command that its approver sees. Its label is in the words of the requester; "" means the
// header of the action, the built-in label or the key.
type Detail = intent.Row

// Actions holds the registered actions by code.
type Actions map[string]Action

// ServiceAction is the code of the one action behind every challenge that a service client started, whatever its action
// code. No request can name it.
const ServiceAction = "service:"

// Gateway is the name under which the guard for gateways starts a challenge, and the code of its action. No service
// client can have it, and no request can name it.
const Gateway = "gateway:"

// Of returns the action of a challenge with a code that a service client started, or none (""). false: no such action
// is registered.
func (as Actions) Of(code, service string) (Action, bool) {
	switch service {
	case "":
	case Gateway:
		code = Gateway
	default:
		code = ServiceAction
	}
	a, ok := as[code]
	return a, ok
}

// Register adds an action. It panics on a second action with the code, and on one with neither or both of Build and
// Exec: both are programming errors.
func (as Actions) Register(a Action) {
	if _, twice := as[a.Code]; twice || (a.Build == nil) == (a.Exec == nil) || a.Prepare != nil && a.Exec == nil {
		panic(fmt.Sprintf("challenge: action %q is registered twice or is incomplete", a.Code))
	}
	if a.Flow == "" {
		a.Flow = FlowSession
	}
	as[a.Code] = a
}
