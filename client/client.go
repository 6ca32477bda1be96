// Package client is a client of the interface. It covers a login with its second factor, every operation behind a
// challenge, the approving device, the socket, and requests that are safe to repeat when an answer was lost.
//
// The one idea: a refusal of the service is an Error with the service's code, and a repeatable request is repeated
// automatically. Any other failed request is returned, and the caller decides.
//
//	c, err := client.New("https://id.example.com")
//	f, err := c.Login(ctx, client.Credentials{CountryCode: "90", PhoneNumber: "5321234567", Password: password})
//	o, err := f.Complete(ctx, f.Methods[0], code) // until o.Done; then c.Token is the session
//	err = c.Call(ctx, "GET", "/auth/sessions", nil, &sessions)
//
// Start reading at Client.Call, then flow.go and device.go; integration.go is for the platform's other services.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"castellan/client/internal/device"
	"castellan/client/internal/fault"
)

// Client calls one service as one user. It is safe for concurrent use if its fields do not change; the outcome of a
// login sets Token, and so does a renewal.
type Client struct {
	URL   string       // base URL, without a slash at the end
	Token string       // x-auth of the session; "" before the login
	HTTP  *http.Client // nil means http.DefaultClient
	Key   *Key         // binds the session, which is then renewed; nil: it ends after half an hour

	serviceKey string // service-auth of a service client, instead of Token
}

// New returns a client of a base URL.
func New(base string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		return nil, fmt.Errorf("%q is not a URL such as https://id.example.com", base)
	}
	return &Client{URL: strings.TrimRight(base, "/")}, nil
}

// Code is a stable error code of the interface, such as TOKEN_EXPIRED; x-codes of an operation in openapi.json lists
// its codes. Compare it with a literal: client.CodeOf(err) == "TOKEN_EXPIRED".
type Code = fault.Code

// Error is a refusal of the service (RFC 9457).
type Error struct {
	Status       int       `json:"status"`
	Code         Code      `json:"code"` // "" if the answer is not one of the service
	Detail       string    `json:"detail"`
	Message      string    `json:"message"` // in the language of the caller
	Field        string    `json:"field"`
	AttemptsLeft *int      `json:"attemptsLeft"`
	RequestID    string    `json:"requestId"`
	RedeemedAt   time.Time `json:"redeemedAt"` // of GRANT_USED: the first redemption

	// ApprovalID is set if Status is 202: the call is not executed until a second person has approved it.
	ApprovalID string `json:"-"`

	RetryAfter time.Duration `json:"-"` // 0: not given
	nonce      string        // requires a new signature of the device
	keyNonce   string        // requires a new proof of the session's key
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the server answered with status %d", e.Status)
	}
	text := string(e.Code) + ": " + e.Detail
	if e.AttemptsLeft != nil {
		text += fmt.Sprintf(" (%d attempts left)", *e.AttemptsLeft)
	}
	return text
}

// CodeOf returns the code of a refusal; "" for every other error and for nil.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// call is a request under way.
type call struct {
	headers map[string]string
	again   bool // it may be sent twice
	device  *Device
	claims  device.Claims
	proof   func(method, path, nonce string) (string, error) // of the session's key; nil for none
	nonce   string                                           // for the proof
}

// Option configures a request.
type Option func(*call)

// Once makes the service execute a request once, whether or not its answers arrive (D-EXT-02), so the request is
// repeated when an answer is lost. The key identifies the request: another request needs another key. Only operations
// that support Idempotency-Key keep the promise; the interface document lists them.
func Once(key string) Option {
	return func(c *call) { c.headers["idempotency-key"], c.again = key, true }
}

// OTP sends the caller's authenticator code, for an operation that requires it.
func OTP(code string) Option { return Header("otp", code) }

// Header sends one more header.
func Header(name, value string) Option { return func(c *call) { c.headers[name] = value } }

func repeatable(c *call) { c.again = true }

// Call sends a request of the session. in is its body as JSON, nil for none; out receives the answer, nil to ignore it.
// A GET is repeated when its answer is lost, and so is a request with Once; each wait ends with ctx. With a Key, a
// request that was refused because its token had expired is repeated after a renewal.
//
// Errors: *Error, connection errors and those of ctx.
func (c *Client) Call(ctx context.Context, method, path string, in, out any, options ...Option) error {
	for again := c.Key != nil; ; again = false {
		token, err := c.session(ctx)
		if err != nil {
			return err
		}
		_, err = c.send(ctx, method, path, in, out,
			append([]Option{c.with(token), Header("service-auth", c.serviceKey)}, options...)...)
		if !again || CodeOf(err) != fault.TokenExpired || !c.renewed(ctx, token) {
			return err
		}
	}
}

const (
	requestTime  = 45 * time.Second // longer than the service holds a request
	maxAnswer    = 8 << 20
	attempts     = 4
	maxRedirects = 10
	firstPause   = 200 * time.Millisecond
)

func (c *Client) send(ctx context.Context, method, path string, in, out any, options ...Option) (http.Header, error) {
	r := call{headers: map[string]string{}, again: method == http.MethodGet}
	for _, o := range options {
		o(&r)
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	signed, proofs := false, 0
	for n, pause := 1, firstPause; ; n, pause = n+1, 2*pause {
		headers, err := c.once(ctx, method, path, body, out, r)
		e, refused := errors.AsType[*Error](err)
		switch {
		case refused && e.nonce != "" && !signed: // the device's clock is wrong
			r.claims.Nonce, signed = e.nonce, true
			continue
		case refused && e.Status == http.StatusUnauthorized && e.keyNonce != "" && proofs < attempts:
			// the clock of this machine is wrong
			r.nonce, proofs = e.keyNonce, proofs+1
			continue
		case err == nil, !r.again, n == attempts, ctx.Err() != nil, refused && !e.passing():
			return headers, err
		case refused:
			pause = max(pause, e.RetryAfter)
		}
		select {
		case <-ctx.Done():
			return nil, err
		// #nosec G404: the delay of a repetition is no secret.
		case <-time.After(pause + rand.N(pause)):
		}
	}
}

// passing reports whether the same request may succeed soon.
func (e *Error) passing() bool {
	return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable ||
		e.Status == http.StatusGatewayTimeout || e.Code == fault.IdempotencyConflict
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, out any, r call) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	headers := maps.Clone(r.headers)
	if body != nil {
		headers["content-type"] = "application/json"
	}
	if r.device != nil {
		if headers["device-signature"], err = r.device.sign(r.claims, c.URL, method, req.URL.RequestURI(), body); err != nil {
			return nil, err
		}
	}
	if r.proof != nil {
		if headers["dpop"], err = r.proof(method, path, r.nonce); err != nil {
			return nil, err
		}
	}
	for name, value := range headers {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, refusal(resp, answer)
	case out == nil:
		return resp.Header, nil
	}
	return resp.Header, json.Unmarshal(answer, out)
}

// do sends a request. It returns a redirect to another server, which would get the token.
func (c *Client) do(r *http.Request) (*http.Response, error) {
	with := *cmp.Or(c.HTTP, http.DefaultClient)
	follow := with.CheckRedirect
	with.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case next.URL.Scheme != r.URL.Scheme || next.URL.Host != r.URL.Host || len(via) > maxRedirects:
			return http.ErrUseLastResponse
		case follow != nil:
			return follow(next, via)
		}
		return nil
	}
	return with.Do(r) // #nosec G704 -- the caller names the server
}

func refusal(resp *http.Response, body []byte) error {
	e := &Error{}
	if json.Unmarshal(body, e) != nil {
		e = &Error{}
	}
	if resp.StatusCode == http.StatusAccepted {
		var waits struct{ Data struct{ ApprovalID string } }
		if json.Unmarshal(body, &waits) == nil {
			e.ApprovalID, e.Detail = waits.Data.ApprovalID, "the call waits for a second person"
		}
	}
	e.Status, e.nonce = resp.StatusCode, resp.Header.Get("device-signature-nonce")
	e.keyNonce = resp.Header.Get("dpop-nonce")
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}
