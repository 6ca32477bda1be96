// Package rest is the kit of which every endpoint of the service is built. An Endpoint is one
// line of a table and one typed function; the kit binds and checks the request, establishes
// the caller, calls the function, writes the answer and turns an error into the one wire shape
// (decision D-GEN-09). The same table drives routing, the firewall's resource names and the
// OpenAPI document, so what is served, guarded and described cannot drift apart.
//
// The one idea: every check that a request must pass is data on its Endpoint. A credential
// without a guard, a guarded key without an endpoint or a flag without its hook stops the
// start of the program (package edge). No endpoint is left open by omission. Handlers never
// see the framework, and no string they get aliases a buffer that the next request will
// overwrite.
//
// The kit knows values and bytes, not the web server: package edge serves its
// table. Start reading here, then bind.go and strict.go (D-GEN-01, 02, 10 and the
// strict JSON of SEC-40), answer.go and problem.go.
package rest

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/token"
)

// Credential names what a request must carry (section 5 of the interface).
type Credential string

// The credentials. NoAuth is the interface's "none"; the identifier None is the
// empty request and answer.
const (
	NoAuth        Credential = "none"
	User          Credential = "x-auth"
	Tenant        Credential = "x-auth (tenant-id)"
	PAuth         Credential = "p-auth"
	PAuthOrDevice Credential = "p-auth or device_signature"
	OTAuth        Credential = "ot-auth"
	Device        Credential = "device_signature"
	TenantOrCron  Credential = "x-auth (tenant-id) or cron-auth"
	// TenantOrService accepts an administrator or a service client (D-INT-01).
	TenantOrService Credential = "x-auth (tenant-id) or service-auth"
	// Service accepts a service client alone (D-EXT-10).
	Service Credential = "service-auth"
)

// Audience names who may use an endpoint once its credential holds (D-AUTH-03).
type Audience string

const (
	Public      Audience = "public"
	SelfUser    Audience = "user"
	DeviceOwner Audience = "device"
	// ServiceClient permits every service client; the endpoint checks the actions of its key.
	ServiceClient Audience = "service"
	// ServiceRole permits a service client whose role has a grant for the endpoint.
	ServiceRole Audience = "service-role"
	SelfOrAdmin Audience = "self-or-admin"
	Admin       Audience = "admin"
)

// Known reports whether c is one of the credentials above.
func (c Credential) Known() bool { _, ok := strictest[c]; return ok }

// TakesSession reports whether a session is a credential of this kind, alone or as an
// alternative.
func (c Credential) TakesSession() bool { return c == User || c.takesTenant() }

func (c Credential) takesTenant() bool {
	return c == Tenant || c == TenantOrCron || c == TenantOrService
}

// strictest is the default audience of a credential: the one that permits the fewest callers.
var strictest = map[Credential]Audience{
	NoAuth: Public, User: SelfUser, Tenant: Admin, PAuth: SelfUser, PAuthOrDevice: SelfUser,
	OTAuth: SelfUser, Device: DeviceOwner, TenantOrCron: Admin, TenantOrService: Admin,
	Service: ServiceRole,
}

// Caller is everything that a handler may know about the caller and the request. Every string
// is a copy that outlives the request.
type Caller struct {
	UserID      string `json:"userId,omitempty"`
	SessionID   string `json:"sessionId,omitempty"`
	Login       string `json:"-"`                     // at another service; "" for a session of this one
	ChallengeID string `json:"challengeId,omitempty"` // of p-auth
	// ChallengeUser is the user of that challenge, "" for a decoy; nil unless the guard looked it up.
	ChallengeUser *string `json:"-"`
	TokenID       string  `json:"tokenId,omitempty"` // of ot-auth, which names no user
	// Cron is the name of the client where cron-auth was the credential.
	Cron string `json:"cron,omitempty"`
	// Service is the name of the service client where service-auth was the credential, and
	// ServiceRole the role of its key.
	Service      string    `json:"service,omitempty"`
	ServiceRole  string    `json:"-"`
	Roles        []string  `json:"roles,omitempty"`
	TokenExpires time.Time `json:"tokenExpires,omitzero"`

	IP       netip.Addr `json:"ip,omitzero"`        // resolved through trusted proxies, never IPv4-mapped
	Country  string     `json:"country,omitempty"`  // ISO 3166-1 alpha-2, "" when unknown
	Language string     `json:"language,omitempty"` // tr, en or ar (D-GEN-16)
	// LanguageAsked reports whether the client requested Language. Otherwise Language is the
	// configured default, and a user's stored language takes precedence.
	LanguageAsked bool       `json:"languageAsked,omitempty"`
	Device        DeviceInfo `json:"device,omitzero"`

	RequestID string `json:"requestId,omitempty"`
	// Wait is the longest time that the client accepts to wait (Prefer: wait=N), at most 30 s.
	Wait time.Duration `json:"-"`
	// HasTags is the header If-None-Match: the versions of the answer that the client
	// has. Tagged reads it.
	HasTags string `json:"-"`
	// DeviceSignature is the proof as sent, of either header spelling.
	DeviceSignature string `json:"deviceSignature,omitempty"`
	// Assertion is the header webauthn-assertion as sent: the answer of a passkey, in base64url.
	Assertion string `json:"-"`
	// RecoveryCode is the header recovery-code as sent: in place of the passkey that a change of factors requires.
	RecoveryCode string `json:"-"`
	// KeyProof is the proof of the session key as sent, in the header dpop (D-AUTH-16).
	KeyProof string `json:"-"`
	// Host is the host that the request names. It is set only with KeyProof, whose target contains it.
	Host string `json:"-"`
	// KeyToken is the x-auth that such a proof names, and KeyProved reports whether the proof was checked and used up.
	KeyToken  string `json:"-"`
	KeyProved bool   `json:"-"`
	// KeyThumbprint is the thumbprint of the key to which the session is bound; "" for none.
	KeyThumbprint string `json:"keyThumbprint,omitempty"`
	// Renewing is the token of a request to a Renewal endpoint.
	Renewing *Renewing `json:"-"`
	// DeviceID and OwnerID identify the registered device that signed the request, if Device was
	// the credential. Such a request has no session.
	DeviceID string `json:"-"`
	OwnerID  string `json:"-"`
	// AsAdmin reports, at an endpoint of audience SelfOrAdmin, whether the caller may act for
	// other accounts. It is checked again at each use, so it is never captured.
	AsAdmin bool `json:"-"`
	// OTP is the code of an endpoint marked Verified: header otp, header x-otp or
	// the body's field otp (D-AUTH-08). It is never captured or logged.
	OTP string `json:"-"`

	Method   string `json:"method,omitempty"` // as sent: HEAD stays HEAD
	Path     string `json:"path,omitempty"`   // as sent, base path included
	RawQuery string `json:"query,omitempty"`  // as sent, without the question mark
	// BodyHash is the SHA-256 of the body as sent. It is set only where the endpoint requires it
	// (HashBody) or an idempotency key makes it necessary.
	BodyHash       [32]byte `json:"bodyHash,omitzero"`
	HasBody        bool     `json:"hasBody,omitempty"`
	IdempotencyKey string   `json:"idempotencyKey,omitempty"`
}

// Renewing is a token whose signature was checked, but perhaps not its time.
type Renewing struct {
	XAuth  string
	Claims token.Claims
}

// ByService begins the name of a service client in the audit: "service:wallet".
const ByService = audit.ByService

// By is the caller as the audit names it.
func (c Caller) By() audit.By {
	by := audit.By{UserID: c.UserID, RequestID: c.RequestID}
	if c.Service != "" {
		by.UserID = ByService + c.Service
	}
	if c.IP.IsValid() {
		by.IP = c.IP.String()
	}
	return by
}

// DeviceInfo is the client's description of itself: the headers device-brand, device-model,
// device-desc and user-agent. It is a claim, not a proof.
type DeviceInfo struct {
	Brand       string `json:"brand,omitempty"`
	Model       string `json:"model,omitempty"`
	Description string `json:"description,omitempty"`
	UserAgent   string `json:"userAgent,omitempty"`
}

// None is a request without fields and the answer {}.
type None struct{}

// Data is the answer {"data": …} (D-GEN-04, 05).
type Data[T any] struct {
	Data T `json:"data"`
}

// Header is one header of an answer.
type Header struct{ Name, Value string }

// Reply is an answer with headers of its own. Body alone is encoded; where Raw
// is not nil it is sent as it is, with ContentType.
type Reply[T any] struct {
	Body        T
	Headers     []Header
	ContentType string
	Raw         []byte
	Status      int // 0 for 200
}

// Undone is implemented by an Out that can report, with the status of a success, that nothing was done (D-TX-05).
type Undone interface{ Undone() (why string, is bool) }

// ResponseHeaders lets an Out carry headers beside the fields it encodes.
type ResponseHeaders interface{ ResponseHeaders() []Header }

// Group is the endpoints of one section of the interface.
type Group interface{ Endpoints() []Endpoint }

// Endpoint is one line of the interface: the data with which the router serves it and the
// OpenAPI document describes it. It is a value; its methods return changed copies.
type Endpoint struct {
	Method, Path, Summary string // Path is the template, parameters in braces: /admin/jobs/{id}
	Credential            Credential
	Audience              Audience
	Errors                []fault.Code
	In, Out               reflect.Type // Out is nil where the Starter answers
	Section               string
	ID, Description       string // operationId and more than the summary says, for the document
	Extension             bool   // not one of the interface's own endpoints (D-EXT-01)

	BodyLimit     int          // bytes; 0 = DefaultBodyLimit
	Repeatable    bool         // honours Idempotency-Key (D-EXT-02)
	WantsBodyHash bool         // Caller.BodyHash is filled
	OTP           bool         // Options.Verify is asked after binding (D-AUTH-08)
	IPFilter      bool         // the caller's allowed-IP list applies (D-AUTH-09)
	Reserved      bool         // of Admin: for the role admin alone; it cannot be granted (D-AUTH-03)
	Sensitive     bool         // mfa.guard_administration guards it with a challenge
	Deciding      bool         // decides on requests pending a second person
	Paired        bool         // every call needs a second person, whatever the configuration says (D-POL-11)
	Disabled      bool         // switched off: every request is answered like one without a route
	Starts        string       // action code of the challenge that it starts, "" for none
	Command       reflect.Type // of the challenge that it starts
	Produces      []string     // media types of a binary answer, for the document
	Schema        string       // named schema of its answer, if Out does not define it
	// headers of its answer that carry tokens, for the document; a starter's p-auth is not listed
	Tokens  []string
	Secrets []string // paths of the fields of its answer that hold a secret
	Waits   bool     // heeds Caller.Wait, for the document
	// Assertion reports whether it takes the header webauthn-assertion, for the document.
	Assertion bool
	Recovers  bool // takes the header recovery-code, for the document
	Tagged    bool // its answer has an ETag; a client with that version gets 304
	Naming    Naming
	// Governs returns what a bound request decides, as rules of the money policy know it; nil: nothing (GovernedBy).
	Governs func(ctx context.Context, in any) (Governed, error)
	// PairedIf reports whether a call needs a second person (PairIf); nil for most endpoints.
	PairedIf func(ctx context.Context, who Caller, in any) (bool, error)
	// Show returns what the intent of a call has beside its fields (Shows); nil for most endpoints.
	Show func(ctx context.Context, in any) (Shown, error)
	// Renewal accepts a session token whose time is over, if the session is bound to a key. The endpoint must verify a
	// proof by that key.
	Renewal bool

	example *Example
	plan    *plan
	lists   listing
	call    func(context.Context, Caller, any) (any, error)
	check   func(in any) error // Checked
	preview func(ctx context.Context, in any) ([]Change, error)
	refusal func(status int, f *fault.Error) any
}

// Get defines an endpoint: fn is the whole handler, and codes are the faults it
// may answer beyond those that every endpoint of its kind can.
//
// In defines the fields of a request: a value field is required, a pointer field (or one with a default)
// is optional; see plan.go for the tags and codec.go for the types. Get, and every other constructor,
// panics when In cannot be bound: the table is built at start.
func Get[In, Out any](path, summary string, cred Credential, fn func(context.Context, Caller, In) (Out, error),
	codes ...fault.Code) Endpoint {
	return define("GET", path, summary, cred, handler[In, Out](fn), codes)
}

// Post is Get for POST.
func Post[In, Out any](path, summary string, cred Credential, fn func(context.Context, Caller, In) (Out, error),
	codes ...fault.Code) Endpoint {
	return define("POST", path, summary, cred, handler[In, Out](fn), codes)
}

// Put is Get for PUT.
func Put[In, Out any](path, summary string, cred Credential, fn func(context.Context, Caller, In) (Out, error),
	codes ...fault.Code) Endpoint {
	return define("PUT", path, summary, cred, handler[In, Out](fn), codes)
}

// Patch is Get for PATCH.
func Patch[In, Out any](path, summary string, cred Credential, fn func(context.Context, Caller, In) (Out, error),
	codes ...fault.Code) Endpoint {
	return define("PATCH", path, summary, cred, handler[In, Out](fn), codes)
}

// Delete is Get for DELETE.
func Delete[In, Out any](path, summary string, cred Credential, fn func(context.Context, Caller, In) (Out, error),
	codes ...fault.Code) Endpoint {
	return define("DELETE", path, summary, cred, handler[In, Out](fn), codes)
}

// handler is what one endpoint adds to the program: its methods are compiled for each pair of types.
type handler[In, Out any] func(context.Context, Caller, In) (Out, error)

func (handler[In, Out]) types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[Out]()
}

func (h handler[In, Out]) call(ctx context.Context, who Caller, in any) (any, error) {
	out, err := h(ctx, who, *in.(*In))
	if err != nil {
		return nil, err
	}
	return out, nil
}

func define(method, path, summary string, cred Credential, h interface {
	types() (in, out reflect.Type)
	call(context.Context, Caller, any) (any, error)
}, codes []fault.Code) Endpoint {
	in, out := h.types()
	return made(method, path, summary, cred, codes, in, out, h.call)
}

// Start2FA defines an endpoint that starts a challenge of one action: prepare checks the
// request and returns the command that runs after completion. The Starter of the Options makes
// the answer.
func Start2FA[In, Cmd any](method, path, summary string, cred Credential, action string,
	prepare func(context.Context, Caller, In) (Cmd, error), codes ...fault.Code) Endpoint {
	e := made(method, path, summary, cred, codes, reflect.TypeFor[In](), nil,
		func(ctx context.Context, who Caller, in any) (any, error) {
			cmd, err := prepare(ctx, who, *in.(*In))
			if err != nil {
				return nil, err
			}
			return Prepared{action, cmd}, nil
		})
	e.Starts, e.Command, e.Secrets = action, reflect.TypeFor[Cmd](), []string{OutcomeData}
	return e
}

// Start2FAOf is Start2FA for an endpoint whose request selects one of several actions: prepare
// returns its code beside the command.
func Start2FAOf[In, Cmd any](method, path, summary string, cred Credential, actions []string,
	prepare func(context.Context, Caller, In) (string, Cmd, error), codes ...fault.Code) Endpoint {
	e := made(method, path, summary, cred, codes, reflect.TypeFor[In](), nil,
		func(ctx context.Context, who Caller, in any) (any, error) {
			action, cmd, err := prepare(ctx, who, *in.(*In))
			if err != nil {
				return nil, err
			}
			return Prepared{action, cmd}, nil
		})
	e.Starts, e.Command = strings.Join(actions, " or "), reflect.TypeFor[Cmd]()
	e.Secrets = []string{OutcomeData}
	return e
}

// Prepared is a command with the code of the action that it is for.
type Prepared struct {
	Action  string
	Command any
}

// made is what all constructors share. out is nil if the answer is not of the handler.
func made(method, path, summary string, cred Credential, codes []fault.Code, in, out reflect.Type,
	call func(context.Context, Caller, any) (any, error)) Endpoint {
	p, err := planOf(in)
	if err != nil {
		panic(fmt.Sprintf("rest: %s %s: %v", method, path, err))
	}
	e := Endpoint{Method: method, Path: path, Summary: summary, Credential: cred, Audience: strictest[cred],
		Errors: codes, In: in, Out: out, plan: p, call: call}
	if out != nil {
		e.lists = listingOf(out)
	}
	return e
}
