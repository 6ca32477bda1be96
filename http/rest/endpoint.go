package rest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"castellan/domain/kit/fault"
)

// Endpoints are the endpoints of a section. The methods set a property of all of them.
type Endpoints []Endpoint

// Section names the section of the interface that endpoints belong to, such as
// "4.18 Withdrawal address book", where they do not name another one (Endpoint.Of).
func Section(name string, all ...Endpoint) Endpoints {
	return Endpoints(all).each(func(e *Endpoint) { e.Section = cmp.Or(e.Section, name) })
}

// For applies Endpoint.For to all.
func (es Endpoints) For(a Audience) Endpoints { return es.each(func(e *Endpoint) { e.Audience = a }) }

// Reserve keeps endpoints of audience Admin to the role admin: they cannot be granted to another one.
func (es Endpoints) Reserve() Endpoints { return es.each(func(e *Endpoint) { e.Reserved = true }) }

// MarkSensitive applies Endpoint.MarkSensitive to the endpoints that change something.
func (es Endpoints) MarkSensitive() Endpoints {
	return es.each(func(e *Endpoint) { e.Sensitive = e.Sensitive || e.Method != "GET" })
}

// Extended applies Endpoint.Extended to all.
func (es Endpoints) Extended() Endpoints { return es.each(func(e *Endpoint) { e.Extension = true }) }

// Disable answers every request of all with 404 NOT_FOUND if off is set, like requests without a route. The document
// keeps the endpoints.
func (es Endpoints) Disable(off bool) Endpoints {
	return es.each(func(e *Endpoint) { e.Disabled = off })
}

func (es Endpoints) each(set func(*Endpoint)) Endpoints {
	for i := range es {
		set(&es[i])
	}
	return es
}

// For names who may use the endpoint.
func (e Endpoint) For(a Audience) Endpoint { e.Audience = a; return e }

// Of names the section of the interface that it belongs to, e.g. "4.18 Withdrawal address book".
func (e Endpoint) Of(section string) Endpoint { e.Section = section; return e }

// Doc sets the operation id, such as listSessions, from which generated clients derive names,
// and the description.
func (e Endpoint) Doc(id, description string) Endpoint {
	e.ID, e.Description = id, description
	return e
}

// DefaultBodyLimit is the largest body of an endpoint without a limit of its own, in bytes (D-GEN-12).
const DefaultBodyLimit = 16 << 10

// LargeBody is the limit of an endpoint that takes lists or long texts, in bytes.
const LargeBody = 1 << 20

// Body sets the largest body it accepts, in bytes. More than DefaultBodyLimit needs
// a credential that does not cover the body.
func (e Endpoint) Body(maxBytes int) Endpoint { e.BodyLimit = maxBytes; return e }

// Idempotent makes the endpoint honour the header Idempotency-Key.
func (e Endpoint) Idempotent() Endpoint { e.Repeatable = true; return e }

// Extended marks it as an extension of the interface.
func (e Endpoint) Extended() Endpoint { e.Extension = true; return e }

// Checked adds check, which validates a request with data that Validate of its type does not
// have, such as a setting. It may set fields that are not read.
func Checked[In any](e Endpoint, check func(*In) error) Endpoint {
	e.check = func(in any) error { return check(in.(*In)) }
	return e
}

// HashBody fills Caller.BodyHash, before the guard runs.
func (e Endpoint) HashBody() Endpoint { e.WantsBodyHash = true; return e }

// Verified requires the caller's current one-time code besides the credential.
func (e Endpoint) Verified() Endpoint { e.OTP = true; return e }

// IPFiltered applies the caller's list of allowed addresses.
func (e Endpoint) IPFiltered() Endpoint { e.IPFilter = true; return e }

// MarkSensitive marks an endpoint that changes permissions or the protection of the service.
// The setting mfa.guard_administration guards it with a challenge.
func (e Endpoint) MarkSensitive() Endpoint { e.Sensitive = true; return e }

// Decides marks an endpoint that decides on requests pending a second person (D-EXT-08).
func (e Endpoint) Decides() Endpoint { e.Deciding = true; return e }

// Pair marks an endpoint of which every call needs a second person (D-POL-11), also without a configuration (D-EXT-08).
func (e Endpoint) Pair() Endpoint { e.Paired = true; return e }

// Governed is what a request decides: a kind of the money policy, DECISION or SETTING, and the setting. The zero value
// decides nothing.
type Governed struct{ Kind, Setting string }

// GovernedBy declares what a request decides; in points to the bound request. Rules of the money policy may deny it, or
// require a second person of their group (D-POL-18).
func (e Endpoint) GovernedBy(find func(ctx context.Context, in any) (Governed, error)) Endpoint {
	e.Governs, e.Errors = find, append(slices.Clone(e.Errors), fault.PolicyDenied)
	return e
}

// Sets is GovernedBy for a request that always changes one setting.
func (e Endpoint) Sets(setting string) Endpoint {
	return e.GovernedBy(func(context.Context, any) (Governed, error) { return Governed{"SETTING", setting}, nil })
}

// PairIf marks an endpoint of which some calls need a second person, also without a configuration. needs decides about
// a bound request, outside of any transaction; its error refuses the call.
func PairIf[In any](e Endpoint, needs func(ctx context.Context, who Caller, in In) (bool, error)) Endpoint {
	e.PairedIf = func(ctx context.Context, who Caller, in any) (bool, error) { return needs(ctx, who, *in.(*In)) }
	return e
}

// Shown is what the intent of a call has beside its fields, and the digest of what the call concerns.
type Shown struct {
	Rows   []ShownRow `json:"rows"`
	Digest string     `json:"digest"`
	// ChallengeID and IntentDigest are those of the challenge that the caller has completed; "" before.
	ChallengeID  string `json:"challengeId,omitempty"`
	IntentDigest string `json:"intentDigest,omitempty"`
}

// ShownRow is a row of an intent.
type ShownRow struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Shows adds what show returns to the intent of each call that is kept for a challenge or for a second person. ShownIn
// returns it when the call runs. Its error refuses the call.
func Shows[In any](e Endpoint, show func(ctx context.Context, in In) (Shown, error)) Endpoint {
	e.Show = func(ctx context.Context, in any) (Shown, error) { return show(ctx, *in.(*In)) }
	return e
}

type shownKey struct{}

// WithShown returns the context in which a kept call runs.
func WithShown(ctx context.Context, s Shown) context.Context {
	return context.WithValue(ctx, shownKey{}, s)
}

// ShownIn returns what the intent of the running call has; the zero value for a call that was not kept.
func ShownIn(ctx context.Context) (s Shown) {
	s, _ = ctx.Value(shownKey{}).(Shown)
	return s
}

// Binary marks an endpoint that answers with bytes of one of the media types (Reply.Raw) instead of JSON.
func (e Endpoint) Binary(mediaTypes ...string) Endpoint { e.Produces = mediaTypes; return e }

// Shaped names the schema of its answer in the document (Extra.Schemas).
func (e Endpoint) Shaped(schema string) Endpoint { e.Schema = schema; return e }

// Gives names the headers of its answer that carry tokens.
func (e Endpoint) Gives(tokens ...string) Endpoint { e.Tokens = tokens; return e }

// Asserts marks an endpoint that takes the answer of a passkey in the header webauthn-assertion.
func (e Endpoint) Asserts() Endpoint { e.Assertion = true; return e }

// TakesRecovery marks an endpoint that takes a recovery code in place of a passkey, in the header recovery-code.
func (e Endpoint) TakesRecovery() Endpoint {
	e.Recovers = true
	e.Errors = append(slices.Clone(e.Errors), fault.RecoveryCodeInvalid)
	return e
}

// Holds marks an endpoint that honours Prefer: wait=N.
func (e Endpoint) Holds() Endpoint { e.Waits = true; return e }

// Tags marks an endpoint whose answer carries the header ETag. A client that names this
// version in If-None-Match gets 304 without a body (RFC 9110, section 13.1.2).
func (e Endpoint) Tags() Endpoint { e.Tagged = true; return e }

// NamesTag reports whether If-None-Match names a tag, by weak comparison.
func NamesTag(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}

// Renews sets Renewal: the endpoint also takes a token whose time is over, and the header dpop.
func (e Endpoint) Renews() Endpoint {
	e.Renewal = true
	return e
}

// RefuseWith sets the body of refusals by binding, verification and the handler (D-TX-05,
// D-COR-04). Refusals by the firewall and the guards keep the general shape, as does a refusal
// for which shape returns nil. The code still determines the status.
func (e Endpoint) RefuseWith(shape func(status int, f *fault.Error) any) Endpoint {
	e.refusal = shape
	return e
}

// Refusal is the endpoint's own body for a fault; nil for the general shape.
func (e *Endpoint) Refusal(status int, f *fault.Error) any {
	if e.refusal == nil {
		return nil
	}
	return e.refusal(status, f)
}

// Key is "<METHOD> <path>", the endpoint's name in firewall rules, permissions
// and configuration.
func (e Endpoint) Key() string { return e.Method + " " + e.Path }

// Call runs the handler with the result of Bind. For an endpoint that starts a challenge, it
// runs the prepare function and returns a Prepared.
func (e *Endpoint) Call(ctx context.Context, who Caller, in any) (any, error) {
	return e.call(ctx, who, in)
}

// Unguardable is the reason why a challenge cannot guard an endpoint (D-2FA-28); "" if it can.
func Unguardable(e Endpoint) string {
	switch {
	case e.Starts != "":
		return "starts a challenge itself"
	case e.Credential != User && e.Credential != Tenant && e.Credential != TenantOrService:
		return "does not take x-auth"
	case e.Renewal:
		return "takes a token whose time is over"
	}
	return ""
}

// Solo is the reason why calls of an endpoint cannot require a second person (D-EXT-08); "" if they can.
func Solo(e Endpoint) string {
	why := ""
	switch {
	case e.Starts != "":
		why = "starts a challenge of its own action"
	case e.Method == "GET":
		why = "changes nothing"
	case Unguardable(e) != "":
		why = Unguardable(e)
	case e.Audience != Admin:
		why = "is not for administrators alone"
	case e.Deciding:
		why = "decides on such requests itself"
	default:
		return ""
	}
	return why + ": only the call of an administrator that can be kept as a command can wait for a second person"
}

// PathParams are the names in braces of a template.
func PathParams(path string) (names []string) {
	for {
		_, tail, found := strings.Cut(path, "{")
		if !found {
			return names
		}
		name, after, _ := strings.Cut(tail, "}")
		names, path = append(names, name), after
	}
}
