package edge

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// Guard establishes the caller of one credential. It gets the request with its
// Caller filled in as far as no credential is needed (address, country,
// language, device, request id) and returns the Caller with the rest.
//
// A returned error refuses the request; *fault.Error decides how.
type Guard func(ctx context.Context, r *Request) (rest.Caller, error)

// Starter begins a challenge for a command that runs after it is completed. The
// out value marshals to {"challenge": …}; the headers carry p-auth (D-AUTH-04).
type Starter interface {
	Start(ctx context.Context, who rest.Caller, action string, command []byte) (out any, headers []rest.Header, err error)
}

// Idempotency runs fn at most once per caller, method, template and key, and replays its
// answer afterwards (D-EXT-02). admit is called before fn, once there is no answer to replay,
// and outside of any transaction. Its writes stay even if fn fails; its error is returned and
// not stored.
//
// fn returns a non-nil error together with an answer that must not be stored (401, 403, 429
// and 5xx). Run then stores nothing, rolls the effects back and returns the error. A kept
// answer of status 400 and above rolls its effects back too.
//
// Errors: IDEMPOTENCY_MISMATCH for another body, IDEMPOTENCY_CONFLICT while the
// first run goes on.
type Idempotency interface {
	Run(ctx context.Context, who rest.Caller, key, method, template string, bodyHash [32]byte,
		admit func(context.Context) error,
		fn func(context.Context) (status int, body []byte, headers []rest.Header, err error),
	) (status int, body []byte, headers []rest.Header, replayed bool, err error)
}

// Answered describes a finished request, for metrics and audit.
type Answered struct {
	Endpoint *rest.Endpoint // nil if no endpoint matched
	Key      string         // "<METHOD> <template>", "<METHOD> *" where no route matched
	Caller   rest.Caller
	Status   int
	Code     fault.Code // "" for a success
	Took     time.Duration
}

// Traceable is the part of a request that a trace may hold.
type Traceable struct {
	Key   string // "<METHOD> <template>", "<METHOD> *" where no route matched
	Start time.Time
	// Parent and State are the headers traceparent and tracestate as sent.
	Parent, State string
	// Trusted reports whether they come from a trusted proxy.
	Trusted bool
}

// Options is what a Server needs. Guards must hold one entry per credential in
// use; everything else has a safe zero value, and a hook may be nil unless an
// endpoint asks for it.
type Options struct {
	Logger *slog.Logger
	// AccessLog is the level of the one line per request; the zero value is Info.
	AccessLog slog.Level
	// Dev is development mode: refused requests are logged at Info, and the detail of a refusal by a limit names its
	// setting.
	Dev bool
	// LocalNames refuses requests whose Host is no loopback name (Loopback).
	LocalNames bool
	Now        func() time.Time

	Guards map[rest.Credential]Guard
	// Firewall judges every request but preflights, before any credential. key is the endpoint's
	// Key, or "<METHOD> *" where no route matches (D-WAF-08). For a health check (HealthCheck) it
	// must not block.
	Firewall func(ctx context.Context, r *Request, key string) error
	// Authorize judges the established caller, whose country and tenant the guard
	// has judged: roles, allowed addresses, in this order. It also judges captured
	// requests again before they run (D-2FA-28).
	Authorize func(ctx context.Context, who rest.Caller, e *rest.Endpoint) error
	// ActsAsAdmin reports whether a caller whom Authorize accepted may act for other accounts at
	// an endpoint of audience SelfOrAdmin; it fills Caller.AsAdmin.
	ActsAsAdmin func(who rest.Caller, e *rest.Endpoint) bool
	// MayName judges the users that a bound request names, where the endpoint declares
	// them (rest.Naming). It also judges captured requests again before they run.
	MayName func(ctx context.Context, who rest.Caller, e *rest.Endpoint, in any) error
	// Verify checks Caller.OTP for endpoints marked Verified, after binding and
	// outside of any transaction: a wrong code stays counted and a right one used,
	// also when the request fails later.
	Verify      func(ctx context.Context, who rest.Caller, e *rest.Endpoint, in any) error
	Idempotency Idempotency
	Starter     Starter
	// Guarded maps an endpoint's Key to the action code of the challenge that its
	// callers must complete first (D-2FA-28).
	Guarded map[string]string
	// FourEyes has the Keys of endpoints whose calls require a second person, after their
	// challenge if they have one; Paired endpoints are added. SecondPerson stores them (D-EXT-08).
	FourEyes     map[string]bool
	SecondPerson SecondPerson
	// Governs judges a call of an endpoint with GovernedBy by the money policy; nil: there is none. second reports whether
	// the call requires a second person. A call that one has approved (audit.Approver) is refused if a rule asks for
	// another one. POLICY_DENIED, FORBIDDEN.
	Governs func(ctx context.Context, who rest.Caller, find func(context.Context) (rest.Governed, error)) (second bool,
		err error)
	// Trace begins the request's part in a trace, when its route is known or when it
	// has none; the context carries it. ended is called with the answer. nil: requests
	// are not traced, which costs nothing.
	Trace func(ctx context.Context, q Traceable) (_ context.Context, ended func(status int, code fault.Code))
	// Observe is called for every finished request; it must not block.
	Observe func(ctx context.Context, a Answered)

	// TrustedProxies are the socket peers whose X-Forwarded-For and CountryHeader are trusted. Empty: none (SEC-30).
	TrustedProxies []netip.Prefix
	CountryHeader  string
	CountryOf      func(netip.Addr) string

	CORSOrigins []string // exact origins, or "*" alone (D-GEN-20)
	// CORSCredentials answers Access-Control-Allow-Credentials: true; an error
	// together with the origin "*".
	CORSCredentials bool

	BasePath        string
	PublicURL       string // Strict-Transport-Security is sent when it is https
	DefaultLanguage string // tr, en or ar; en when empty
	BodyBudget      int64  // memory for all bodies under way, in bytes; 64 MiB when 0
	// Timeout bounds the context of a request, in addition to what the client
	// asks to wait; 10 s when 0.
	Timeout time.Duration
	// MaxInFlight is the number of requests served at once, beyond which 503
	// OVERLOADED is answered; 0 for no bound. Health checks are not counted.
	MaxInFlight int
	// MaxConnections bounds the connections that Serve serves, beyond which 503
	// OVERLOADED is answered; New lowers it to what the limit of open files allows.
	// MaxConnectionsPerIP bounds those of one socket peer: an IPv4 address or an IPv6
	// network of 64 bits. 0 for no bound.
	MaxConnections, MaxConnectionsPerIP int
	// Base is the context that those of requests are made under; nil for one that
	// never ends.
	Base func() context.Context
	// Resumed reports whether the process was stopped a moment ago: a request may be
	// old then, and is dropped when its client has gone. nil: never.
	Resumed func() bool
	// Draining answers 503 DRAINING to everything but health checks while true.
	Draining func() bool
}
