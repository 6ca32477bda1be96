package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"castellan/client/internal/fault"
)

// Credentials identify a user at login: a phone number with its country code, or a mail address.
type Credentials struct {
	CountryCode string `json:"countryCode,omitempty"`
	PhoneNumber string `json:"phoneNumber,omitempty"`
	Email       string `json:"email,omitempty"`
	Password    string `json:"password"`
}

// Method is one way to answer a challenge.
type Method struct {
	ID         string `json:"id"`
	Name       string `json:"name"`       // SMS, MAIL, TOTP or PUSH
	Expire     int64  `json:"expire"`     // lifetime in seconds
	RenewStart int64  `json:"renewStart"` // seconds after the start at which Renew is possible; 0: never
	Hint       string `json:"hint"`
	// MatchNumber is displayed beside a push with number matching: the device requires it.
	MatchNumber string `json:"matchNumber"`
	// Completed reports whether the method needs no answer, because the client is remembered.
	Completed bool `json:"completed"`
	// WebAuthn are the request options with which a passkey may approve a push; nil: none may (Flow.Assert).
	WebAuthn json.RawMessage `json:"webauthn,omitempty"`
}

// Flow is a challenge from its start to its outcome.
type Flow struct {
	ID      string
	PAuth   string // its token
	Expires time.Time
	Methods []Method
	// RememberDays is for how many days CompleteAndRemember has this client remembered; 0: not at all.
	RememberDays int
	// Completed reports whether the start has completed the challenge, because the client is remembered by its Key. Wait
	// then returns the outcome.
	Completed bool
	// Rows are the values that the user approves, of a request behind a gateway (Client.Guarded).
	Rows []GuardRow

	client *Client
}

type started struct {
	Challenge struct {
		ID      string   `json:"challengeId"`
		Expire  int64    `json:"expire"`
		Methods []Method `json:"methodList"`
		Status  string   `json:"status"`
		Days    int      `json:"rememberDays"`
	} `json:"challenge"`
	Rows []GuardRow `json:"rows"`
}

// Outcome is the result of a challenge.
type Outcome struct {
	Done        bool // false: more methods are needed
	ChallengeID string
	Action      string // such as LOGIN
	Success     bool
	Code        Code // of a failure
	Message     string
	Data        json.RawMessage
	XAuth       string // of a login
	OTAuth      string // of a password reset
}

type result struct {
	ChallengeID string `json:"challengeId"`
	Action      string `json:"action"`
	ExecResult  *struct {
		Success bool            `json:"success"`
		Code    Code            `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"execResult"`
}

func (r result) outcome(h http.Header) (o Outcome) {
	o.ChallengeID, o.Action = r.ChallengeID, r.Action
	if x := r.ExecResult; x != nil {
		o = Outcome{true, r.ChallengeID, r.Action, x.Success, x.Code, x.Message, x.Data, h.Get("x-auth"), h.Get("ot-auth")}
	}
	return o
}

// Login sends the password and starts the challenge that creates the session.
func (c *Client) Login(ctx context.Context, who Credentials) (*Flow, error) {
	return c.start(ctx, http.MethodPost, "/auth/login", who, c.signing)
}

// Start starts an operation that needs a second factor, such as POST /auth/password.
func (c *Client) Start(ctx context.Context, method, path string, in any, options ...Option) (*Flow, error) {
	token, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	return c.start(ctx, method, path, in, append([]Option{c.with(token)}, options...)...)
}

func (c *Client) start(ctx context.Context, method, path string, in any, options ...Option) (*Flow, error) {
	var s started
	headers, err := c.send(ctx, method, path, in, &s, options...)
	if err != nil {
		return nil, err
	}
	return c.flow(s, headers)
}

func (c *Client) flow(s started, headers http.Header) (*Flow, error) {
	f := &Flow{ID: s.Challenge.ID, PAuth: headers.Get("p-auth"), Methods: s.Challenge.Methods, client: c,
		RememberDays: s.Challenge.Days, Completed: s.Challenge.Status == "COMPLETED", Rows: s.Rows,
		Expires: time.Now().Add(time.Duration(s.Challenge.Expire) * time.Second)}
	if f.PAuth == "" {
		return nil, errors.New("the operation has run: it has no challenge")
	}
	return f, nil
}

// Method finds a method by its name.
func (f *Flow) Method(name string) (Method, bool) {
	i := slices.IndexFunc(f.Methods, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return f.Methods[i], true
}

// Complete answers a method with its code. The outcome is not Done while the policy requires another method. Complete
// waits for a slow action. It is repeated when the answer is lost, because the service answers an equal completion with
// the same result (D-2FA-14).
//
// Errors: *Error, such as OTP_INVALID with AttemptsLeft.
func (f *Flow) Complete(ctx context.Context, m Method, code string) (Outcome, error) {
	return f.complete(ctx, map[string]string{"methodId": m.ID, "method": m.Name, "value": code})
}

// CompleteAndRemember is Complete that has this client remembered, if the answer completes the challenge and the policy
// allows it (RememberDays). The client needs a Key, which must be the same at the next start.
func (f *Flow) CompleteAndRemember(ctx context.Context, m Method, code string) (Outcome, error) {
	return f.complete(ctx, map[string]any{"methodId": m.ID, "method": m.Name, "value": code, "remember": true})
}

func (f *Flow) complete(ctx context.Context, body any, options ...Option) (Outcome, error) {
	var r result
	began := time.Now()
	headers, err := f.client.send(ctx, http.MethodPost, "/auth/2fa/challenge/complete", body, &r,
		append(options, f.auth, repeatable)...)
	switch {
	case err != nil:
		return Outcome{}, err
	case r.ExecResult == nil && r.ChallengeID != "" && f.PAuth != "": // the action is slow
		return f.Wait(ctx)
	}
	return f.took(r.outcome(headers), began), nil
}

func (f *Flow) auth(c *call) { c.headers["p-auth"] = f.PAuth }

func (f *Flow) took(o Outcome, began time.Time) Outcome {
	if o.XAuth != "" {
		f.client.take(o.XAuth, began)
	}
	return o
}

// Renew requests a new code, by SMS or MAIL.
func (f *Flow) Renew(ctx context.Context, m Method) error {
	_, err := f.client.send(ctx, http.MethodPost, "/auth/2fa/challenge/renew",
		map[string]string{"methodId": m.ID, "method": m.Name}, nil, f.auth)
	return err
}

// Wait waits for the outcome, also if a device or another program completes the challenge. It ends with ctx, and with
// an *Error if the challenge ends without an outcome.
func (f *Flow) Wait(ctx context.Context) (Outcome, error) {
	for {
		var r result
		began := time.Now()
		headers, err := f.client.send(ctx, http.MethodGet, "/auth/2fa/challenge/result", nil, &r, f.auth,
			Header("prefer", "wait=25"))
		if err == nil {
			return f.took(r.outcome(headers), began), nil
		}
		e, refused := errors.AsType[*Error](err)
		if !refused || e.Code != fault.ChallengeNotCompleted {
			return Outcome{}, err
		}
		select {
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-time.After(max(e.RetryAfter, firstPause)):
		}
	}
}
