// Package challenge serves section 4.1 of the interface: the endpoints with which a client
// completes a challenge. The socket of the section is in http/socket.
package challenge

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/device"
	"castellan/domain/proof/stepup"
	"castellan/http/auth"
	"castellan/http/rest"
	"castellan/http/wire"
)

const (
	section   = "4.1 2FA"
	extension = "Extensions: challenges"
)

// Answers is the part of stepup.Answerer that the section uses.
type Answers interface {
	Complete(ctx context.Context, a stepup.Answer) (stepup.Completion, error)
	Renew(ctx context.Context, challengeID, methodID string, name challenge.Name,
		by audit.By) (challenge.Challenge, error)
	Result(ctx context.Context, challengeID string, wait time.Duration) (stepup.Completion, error)
	Ongoing(ctx context.Context, userID, language string, country func(code,
		language string) string) ([]stepup.Approval, error)
}

// Group serves the section. CountryName, if set, turns a country code into its name in a
// language; Zone is that of written times, UTC where it is nil.
type Group struct {
	Answers     Answers
	Now         func() time.Time
	CountryName func(code, language string) string
	Zone        *time.Location
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/auth/2fa/challenge/complete", "Complete a method of a challenge", rest.PAuthOrDevice, g.complete,
			fault.InvalidField, fault.ChallengeNotFound, fault.MethodNotFound,
			fault.MethodAlreadyCompleted, fault.ChallengeClosed,
			fault.ChallengeExpired, fault.MethodExpired, fault.OTPInvalid, fault.MethodLocked, fault.RateLimited,
			fault.DeviceSignatureRequired, fault.DeviceSignatureInvalid).HashBody().Gives("x-auth", "ot-auth").Asserts().
			Secret(rest.OutcomeData).
			Try(`{"methodId":"${challenge.method}","method":"SMS","value":"${challenge.code}"}`).
			Doc("completeChallenge",
				"Send the code, or the decision about a push. A wrong code gives 422 OTP_INVALID with attemptsLeft. The "+
					"action runs when the last required method is complete. Its outcome is in execResult, its tokens are in "+
					"response headers. The device that received a push can also answer it, with device-signature in place of "+
					"p-auth. A passkey approves a push with p-auth and webauthn-assertion."),
		rest.Post("/auth/2fa/challenge/renew", "Renew the code of a method", rest.PAuth, g.renew,
			fault.InvalidField, fault.MethodNotFound, fault.MethodAlreadyCompleted,
			fault.ChallengeClosed, fault.ChallengeExpired,
			fault.RenewNotSupported, fault.RenewClosed, fault.RenewTooEarly, fault.RateLimited).
			Secret(rest.OutcomeData).
			Try(`{"methodId":"${challenge.method}","method":"SMS"}`, fault.RenewTooEarly).
			Doc("renewMethod",
				"Only SMS and MAIL support renewal. The old code becomes invalid. Two refusals leave it valid: 429 "+
					"RENEW_TOO_EARLY, with the remaining wait in Retry-After, and RATE_LIMITED, after too many codes."),
		rest.Get("/auth/2fa/challenge/result", "Get the outcome of a challenge, or wait for it with Prefer: wait=N",
			rest.PAuth, g.result, fault.ChallengeNotCompleted, fault.ChallengeClosed, fault.ChallengeExpired,
			fault.ChallengeNotFound).Gives("x-auth", "ot-auth").Secret(rest.OutcomeData).Holds().
			Doc("getChallengeResult",
				"Returns the outcome once the action has run, also to a client that lost the response of completeChallenge. "+
					"Without Prefer, or after the wait, 409 CHALLENGE_NOT_COMPLETED gives the delay before the next request in "+
					"Retry-After."),
		rest.Start2FAOf("POST", "/auth/2fa/challenge/start",
			"Start a challenge for an action without its own endpoint", rest.User,
			[]string{user.ActionVerifyEmail, user.ActionVideoKYC}, g.start, fault.InvalidField, fault.MFANotAvailable,
			fault.RateLimited).Of(extension).Extended().
			Doc("startChallenge",
				"For actions that only prove something and change no other data. VERIFY_EMAIL marks the mail address as "+
					"verified, DURING_VIDEO_KYC proves the presence of the account owner."),
		rest.Get("/auth/2fa/challenge/ongoing", "List the pending pushes of a device, newest first",
			rest.Device, g.ongoing,
			fault.InvalidField, fault.DeviceSignatureRequired, fault.DeviceSignatureInvalid).HashBody().
			Try("deviceId=${phone.id}").
			Doc("listPendingPushes",
				"A device polls this endpoint if no push service reaches it. The device signs the request."),
	)
}

// startRequest names one of two actions: VERIFY_EMAIL requires the code that is sent to the
// account's address, and marks the address as verified.
type startRequest struct {
	ActionCode string `json:"actionCode" enum:"VERIFY_EMAIL,DURING_VIDEO_KYC"`
}

func (g Group) start(_ context.Context, _ rest.Caller, in startRequest) (string, rest.None, error) {
	return in.ActionCode, rest.None{}, nil
}

type completeRequest struct {
	ChallengeID *string `json:"challengeId" doc:"required only to answer a push without p-auth"`
	MethodID    string  `json:"methodId"`

	Method challenge.Name `json:"method"` // or an alias

	Value    string  `json:"value" doc:"the code; for a push DENIED, APPROVED or, with matchNumber, APPROVED:<number>"`
	DeviceID *string `json:"deviceId" doc:"for a push: the device that answers it"`
	Remember *bool   `json:"remember" doc:"extension: remember the client, if this completes the challenge"`
}

type challengeCompletion struct {
	Action string `json:"action"`

	ExecResult  *wire.ExecResult `json:"execResult,omitempty" doc:"present once the action of the challenge has run"`
	ChallengeID string           `json:"challengeId,omitempty" doc:"present in the final response"`
}

func (g Group) complete(
	ctx context.Context, who rest.Caller, in completeRequest,
) (rest.Reply[challengeCompletion], error) {
	var none rest.Reply[challengeCompletion]
	name, ok := challenge.ParseName(string(in.Method))
	if !ok {
		return none, fault.Invalid("method", "must be one of %s", challenge.Listed(challenge.Names()))
	}
	a := stepup.Answer{ChallengeID: who.ChallengeID, UserID: who.ChallengeUser, MethodID: in.MethodID, Method: name,
		Value: in.Value, Signed: auth.Signed(who), By: who.By()}
	a.Remember = rest.Or(in.Remember, false)
	if in.DeviceID != nil {
		a.DeviceID = *in.DeviceID
	}
	if who.Assertion != "" && name == challenge.PUSH {
		a.Assertion = assertion(who.Assertion)
	}
	starter := who.ChallengeID != ""
	switch {
	case starter && in.ChallengeID != nil && *in.ChallengeID != who.ChallengeID:
		return none, fault.Invalid("challengeId", "is not the challenge of the token")
	case !starter && name != challenge.PUSH:
		return none, fault.New(fault.Unauthenticated, "p-auth is required for this method")
	case !starter && in.ChallengeID == nil:
		return none, fault.Invalid("challengeId", "is required without p-auth")
	case !starter && in.DeviceID == nil:
		return none, fault.Invalid("deviceId", "is required without p-auth")
	case !starter:
		a.ChallengeID = *in.ChallengeID
	}
	c, err := g.Answers.Complete(ctx, a)
	if err != nil {
		return none, err
	}
	r := rest.Reply[challengeCompletion]{Body: challengeCompletion{Action: c.Action}}
	if c.Final {
		r.Body.ChallengeID = c.ChallengeID
	}
	if c.Result != nil {
		r.Body.ExecResult = wire.Exec(*c.Result, starter)
		if starter {
			r.Headers = wire.Tokens(*c.Result)
		}
	}
	return r, nil
}

// assertion decodes the header webauthn-assertion. One that is not base64url becomes an empty answer, which is refused
// like any other.
func assertion(header string) []byte {
	b, err := base64.RawURLEncoding.Strict().DecodeString(header)
	if err != nil {
		return []byte{}
	}
	return b
}

// sentName is the name of a kind whose codes are sent.
type sentName string

// Enum returns the values that the description of the interface lists.
func (sentName) Enum() (names []string) {
	for _, n := range challenge.Names() {
		if n.Sent() {
			names = append(names, string(n))
		}
	}
	return names
}

type renewRequest struct {
	MethodID string   `json:"methodId"`
	Method   sentName `json:"method"`
}

func (g Group) renew(ctx context.Context, who rest.Caller, in renewRequest) (wire.ChallengeAnswer, error) {
	name, ok := challenge.ParseName(string(in.Method))
	if !ok {
		return wire.ChallengeAnswer{}, fault.Invalid("method", "must be one of %s",
			strings.Join(sentName("").Enum(), ", "))
	}
	c, err := g.Answers.Renew(ctx, who.ChallengeID, in.MethodID, name, who.By())
	if err != nil {
		return wire.ChallengeAnswer{}, err
	}
	return wire.Renewed(c, in.MethodID, g.Now()), nil
}

type challengeResult struct {
	Action      string          `json:"action"`
	ChallengeID string          `json:"challengeId"`
	ExecResult  wire.ExecResult `json:"execResult"`
}

func (g Group) result(ctx context.Context, who rest.Caller, _ rest.None) (rest.Reply[challengeResult], error) {
	c, err := g.Answers.Result(ctx, who.ChallengeID, who.Wait)
	if err != nil {
		return rest.Reply[challengeResult]{}, err
	}
	return rest.Reply[challengeResult]{
		Body:    challengeResult{Action: c.Action, ChallengeID: c.ChallengeID, ExecResult: *wire.Exec(*c.Result, true)},
		Headers: wire.Tokens(*c.Result),
	}, nil
}

type ongoingRequest struct {
	DeviceID string `json:"deviceId" doc:"the device that signs the request"`
	Intent   *bool  `json:"intent" doc:"extension: with intent and intentDigest"`
}

// pendingPush is an unanswered push (section 2.1 of the interface).
type pendingPush struct {
	Body string          `json:"body" doc:"text of the question"`
	Data pendingPushData `json:"data"`
	// Intent and IntentDigest are an extension, present if they are requested.
	Intent       *rest.JSON `json:"intent,omitempty" schema:"Intent" doc:"extension: the document that the device signs"`
	IntentDigest string     `json:"intentDigest,omitempty" doc:"extension: the claim int"`
}

type pendingPushData struct {
	ChallengeID string `json:"challengeId"`
	TS          int64  `json:"ts" doc:"creation, epoch ms"`
	MethodID    string `json:"methodId"`
	Action      string `json:"action"`
	ActionTitle string `json:"actionTitle"`
	// NumberMatching is an extension, present if it is on.
	NumberMatching bool `json:"numberMatching,omitempty" doc:"extension: approve with APPROVED:<the starter's number>"`

	Params pendingPushParams `json:"params"`
}

type pendingPushParams struct {
	IP          string    `json:"ip"`
	DeviceBrand string    `json:"deviceBrand"`
	DeviceModel string    `json:"deviceModel"`
	DeviceDesc  string    `json:"deviceDesc"`
	DateTime    string    `json:"dateTime" doc:"DD.MM.YYYY HH:mm:ss in the configured time zone"`
	Timestamp   int64     `json:"timestamp" doc:"creation, epoch ms"`
	CountryName string    `json:"countryName" doc:"empty if unknown"`
	Expire      int64     `json:"expire" doc:"seconds left until expiry"`
	InfoTable   infoTable `json:"infoTable"`
}

type infoTable struct {
	Metadata infoTableMetadata `json:"metadata"`
	Data     [][]string        `json:"data" doc:"[header, value] in the order of infoTableHeaders"`
}

type infoTableMetadata struct {
	Type string `json:"type"`
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
}

func (g Group) ongoing(ctx context.Context, who rest.Caller, in ongoingRequest) ([]pendingPush, error) {
	if in.DeviceID != who.DeviceID {
		return nil, device.Refused()
	}
	language := ""
	if who.LanguageAsked { // else the user's own language takes precedence (D-GEN-16)
		language = who.Language
	}
	all, err := g.Answers.Ongoing(ctx, who.OwnerID, language, g.CountryName)
	if err != nil {
		return nil, err
	}
	zone := g.Zone
	if zone == nil {
		zone = time.UTC
	}
	out := make([]pendingPush, len(all))
	for i, a := range all {
		c, from := a.Challenge, a.Challenge.Starter
		p := pendingPushParams{IP: from.IP, DeviceBrand: from.Brand, DeviceModel: from.Model,
			DeviceDesc: from.Description,
			DateTime:   time.UnixMilli(c.CreatedAt).In(zone).Format("02.01.2006 15:04:05"), Timestamp: c.CreatedAt,
			CountryName: a.Country, Expire: int64(a.Left / time.Second),
			InfoTable: infoTable{Metadata: infoTableMetadata{Type: "table", Rows: len(a.Rows), Cols: 2},
				Data: make([][]string, len(a.Rows))}}
		for j, row := range a.Rows {
			p.InfoTable.Data[j] = row[:]
		}
		out[i] = pendingPush{Body: a.Text, Data: pendingPushData{ChallengeID: c.ID, TS: c.CreatedAt,
			MethodID: a.Method.ID,
			Action:   c.Action, ActionTitle: a.Title,
			NumberMatching: a.Method.Number != "", Params: p}}
		if rest.Or(in.Intent, false) {
			out[i].Intent, out[i].IntentDigest = new(rest.JSON(a.Document)), c.IntentDigest
		}
	}
	return out, nil
}
