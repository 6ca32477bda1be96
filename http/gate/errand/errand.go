// Package errand serves the guard for other services (D-EXT-10): they start a challenge for one of their own
// operations, wait for its outcome and redeem its grant.
//
// Start reading at Group.Endpoints.
package errand

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/gate/errand"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/http/rest"
	"castellan/http/wire"
)

const section = "Extensions: guard"

// Group serves the endpoints. Owner returns the user of an x-auth token, with what the challenge of that user keeps of
// its starter; its errors are those of the guard of x-auth.
type Group struct {
	Service *errand.Service
	Owner   func(ctx context.Context, who rest.Caller, userToken string) (userID string, s challenge.Starter, err error)
	Now     func() time.Time
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/guard/challenges", "Start the challenge of an operation of another service", rest.Service, g.start,
			fault.InvalidField, fault.Forbidden, fault.RecordNotFound, fault.InvalidState, fault.MFANotAvailable,
			fault.RateLimited, fault.Overloaded).Body(rest.LargeBody).
			Try(`{"actionCode":"PAYOUT","userId":"${user.id}","title":"Pay out 25 EUR","reference":"payout-1",`+
				`"rows":[{"key":"amount","label":"Amount","value":"25.00 EUR"}],"payload":{"payout":1}}`).
			Gives("p-auth").Secret(rest.OutcomeData).
			Doc("startGuardChallenge", "The key of the service must have the action. Title and rows are what the user "+
				"sees and signs; values must be complete. The service hands the header p-auth to its client, which completes "+
				"the challenge. The same request with the same reference returns the same challenge, with another body 409 "+
				"INVALID_STATE. The payload is sealed, and redeemGuardGrant returns it."),
		rest.Get("/guard/challenges/{id}", "Get the outcome of a service's challenge, or wait for it with Prefer: wait=N",
			rest.Service, g.get, fault.RecordNotFound).Holds().Secret("data.grant").
			Try("id=${startGuardChallenge.challenge.challengeId}").
			Doc("getGuardChallenge", "With Prefer: wait=N, the response is delayed until the status is not PENDING, for at "+
				"most N seconds. When it is COMPLETED, grant is a JWT of the type guard-grant+jwt for 60 s, signed with a key "+
				"of the JWKS. For 10 minutes after the approval, each read returns a valid grant until one is redeemed."),
		rest.Post("/guard/grants/redeem", "Redeem a grant, once", rest.Service, g.redeem, fault.InvalidField,
			fault.RecordNotFound, fault.GrantUsed, fault.TokenRevoked).
			Try(`{"grant":"unknown"}`, fault.Unauthenticated).
			Doc("redeemGuardGrant", "Exactly one call succeeds for a challenge and returns the payload. Later calls give 409 "+
				"GRANT_USED with redeemedAt."),
	).For(rest.ServiceClient).Extended()
}

type row struct {
	Key   string `json:"key" maxLength:"64" example:"amount"`
	Label string `json:"label" maxLength:"100" example:"Amount"`
	Value string `json:"value" maxLength:"1000" example:"25.00 EUR"`
}

type startRequest struct {
	ActionCode string          `json:"actionCode" maxLength:"64" example:"PAYOUT"`
	UserID     *string         `json:"userId" maxLength:"64" doc:"required without userToken"`
	UserToken  *string         `json:"userToken" maxLength:"8192" doc:"x-auth or foreign token" example:"eyJhbGciOiJFZER…"`
	Title      string          `json:"title" maxLength:"200" example:"Pay out 25 EUR"`
	Rows       []row           `json:"rows" doc.maxItems:"20" doc:"1 to 20 values that the user sees, in this order"`
	Reference  string          `json:"reference" maxLength:"128" doc:"the service's own id" example:"payout-1"`
	Payload    json.RawMessage `json:"payload,omitempty" schema:"AnyJson" doc:"any JSON of at most 16 KiB"`
}

// Validate requires one user, and rows that a user can read.
func (in startRequest) Validate() error {
	var ps fault.Problems
	ps.Require(in.UserID != nil || in.UserToken != nil, "userId", "is required without userToken")
	ps.Require(in.UserID == nil || in.UserToken == nil, "userToken", "must not be sent with userId")
	ps.Require(legible.Line(in.Title), "title", "must be a line of text")
	ps.Require(len(in.Reference) <= errand.MaxReference && legible.Line(in.Reference), "reference",
		"must be a line of text of at most 128 bytes")
	ps.Require(len(in.Payload) <= errand.MaxPayloadBytes, "payload", "must be at most 16384 bytes")
	if len(in.Rows) == 0 || len(in.Rows) > errand.MaxRows {
		ps.Require(false, "rows", "must have 1 to 20 elements")
		return fault.All(ps)
	}
	seen := map[string]bool{}
	for _, r := range in.Rows {
		lines := legible.Line(r.Key) && legible.Line(r.Label) && legible.Line(r.Value) && !seen[r.Key]
		ps.Require(lines, "rows", "must have different keys, and a line of text for each key, label and value")
		if !lines {
			break
		}
		if mfa.Reserved(r.Key) {
			ps.Require(false, "rows", "must not have the key time, device, ip, country or remembered")
			break
		}
		seen[r.Key] = true
	}
	return fault.All(ps)
}

func (g Group) start(ctx context.Context, who rest.Caller,
	in startRequest) (out rest.Reply[wire.ChallengeAnswer], err error) {
	r := errand.Request{Service: who.Service, Action: in.ActionCode, UserID: rest.Or(in.UserID, ""), Title: in.Title,
		Rows: rest.Each(in.Rows, func(r row) challenge.Detail { return challenge.Detail(r) }), Reference: in.Reference,
		Payload: in.Payload}
	from := challenge.Starter{RequestID: who.RequestID}
	if who.LanguageAsked {
		from.Language = who.Language
	}
	if in.UserToken != nil {
		if r.UserID, from, err = g.owned(ctx, who, *in.UserToken); err != nil {
			return out, err
		}
	}
	started, repeated, err := g.Service.Start(ctx, who.By(), r, from)
	if err != nil {
		return out, err
	}
	out = wire.Started(started)
	if repeated {
		out.Body = wire.Renewed(started.Challenge, "", g.Now())
	}
	return out, nil
}

// owned is Owner with refusals that name the field, because the caller has its own credential.
func (g Group) owned(ctx context.Context, who rest.Caller, token string) (string, challenge.Starter, error) {
	userID, from, err := g.Owner(ctx, who, token)
	if f, is := err.(*fault.Error); is {
		named := *f
		named.Field = "userToken"
		err = &named
	}
	return userID, from, err
}

type getRequest struct {
	ID string `json:"id" maxLength:"64"`
}

// guardChallenge is the state of a service's challenge.
type guardChallenge struct {
	ID          string     `json:"id" example:"01JD3XE5GN2D2R8A5PKM9C1YQF"`
	Status      string     `json:"status" enum:"PENDING,COMPLETED,DENIED,EXPIRED,FAILED"`
	Reference   string     `json:"reference" example:"payout-1"`
	Grant       *string    `json:"grant" doc:"null unless COMPLETED and not redeemed" example:"eyJhbGciOiJFZERTQSI…"`
	CompletedAt *rest.Time `json:"completedAt" example:"2026-01-31T10:00:00.000Z" doc:"null unless COMPLETED"`
	RedeemedAt  *rest.Time `json:"redeemedAt" example:"2026-01-31T10:00:05.000Z" doc:"null until the grant is redeemed"`
}

func (g Group) get(ctx context.Context, who rest.Caller,
	in getRequest) (out rest.Reply[rest.Data[guardChallenge]], err error) {
	e, err := g.Service.Get(ctx, who.Service, in.ID, who.Wait)
	if err != nil {
		return out, err
	}
	grant, err := g.Service.Grant(ctx, e)
	if err != nil {
		return out, err
	}
	shown := guardChallenge{ID: e.ID, Status: string(e.Status), Reference: e.Reference, Grant: rest.Filled(grant),
		RedeemedAt: rest.At(e.RedeemedAt)}
	if e.Status == errand.Completed {
		shown.CompletedAt = rest.At(e.SettledAt)
	}
	out.Body.Data = shown
	if who.Wait > 0 {
		out.Headers = []rest.Header{{Name: "Preference-Applied", Value: fmt.Sprintf("wait=%d", int(who.Wait.Seconds()))}}
	}
	return out, nil
}

type redeemRequest struct {
	Grant string `json:"grant" maxLength:"8192" example:"eyJhbGciOiJFZERTQSI…"`
}

// redeemedGrant is the result of the one successful redemption.
type redeemedGrant struct {
	Reference  string          `json:"reference" example:"payout-1"`
	Payload    json.RawMessage `json:"payload" schema:"AnyJson" doc:"the JSON value that was sent; null for none"`
	RedeemedAt rest.Time       `json:"redeemedAt" example:"2026-01-31T10:00:05.000Z"`
}

func (g Group) redeem(ctx context.Context, who rest.Caller,
	in redeemRequest) (out rest.Data[redeemedGrant], err error) {
	r, err := g.Service.Redeem(ctx, who.By(), who.Service, in.Grant)
	if err != nil {
		return out, err
	}
	out.Data = redeemedGrant{Reference: r.Reference, Payload: r.Content, RedeemedAt: rest.Time{Time: r.RedeemedAt}}
	return out, nil
}
