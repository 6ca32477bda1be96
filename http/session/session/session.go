// Package session serves the extension endpoints for sessions (decisions D-AUTH-01, D-EXT-01):
// login with a password and a second factor, logout, and the list of sessions.
//
// Start reading at Endpoints. Every rule is in domain/session/session.
package session

import (
	"cmp"
	"context"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/dpop"
	"castellan/domain/session/session"
	"castellan/http/auth"
	"castellan/http/rest"
	"castellan/http/wire"
)

const section = "Extensions: login and sessions"

// Group serves the endpoints.
type Group struct {
	Service     *session.Service
	CountryName func(code, language string) string
}

func (g Group) Endpoints() []rest.Endpoint {
	const sessions = "/auth/sessions"
	return rest.Section(section,
		rest.Post("/auth/login", "Log in with a password and start a challenge",
			rest.NoAuth, g.login,
			fault.InvalidField, fault.InvalidCredentials, fault.DPoPInvalid, fault.MFANotAvailable, fault.RateLimited,
			fault.Overloaded).Gives("p-auth", "x-auth").Secret(rest.OutcomeData).
			Try(`{"countryCode":"90","phoneNumber":"${user.phone}","password":"${user.password}"}`).
			Doc("login",
				"Send a phone number with its country code, or a mail address. The response is a challenge, with its token in "+
					"the header p-auth. The response of completeChallenge has the session token in x-auth. An unknown account and "+
					"a wrong password give the same 401. With a proof of a key in the header dpop (RFC 9449), the session is bound "+
					"to the key and can be renewed (renewSession). A passkey replaces identifier and password: send ticket and "+
					"assertion. If the policy lets a passkey suffice, the challenge is completed, and this response has x-auth."),
		rest.Post("/auth/login/passkey", "Get the options for a login by a passkey", rest.NoAuth, g.options).
			Try("").
			Doc("startPasskeyLogin",
				"Returns PublicKeyCredentialRequestOptionsJSON (WebAuthn Level 3) for navigator.credentials.get, the same for "+
					"every caller. Send its result as assertion to login, with the ticket, within 10 minutes. A ticket is "+
					"accepted once."),
		rest.Post(sessions+"/renew", "Renew the caller's session with its key", rest.User, g.renew).Renews().Gives("x-auth").
			Doc("renewSession",
				"For a session that is bound to a key: one whose login had the header dpop (RFC 9449). Send the last x-auth, "+
					"which may have expired, and a proof by the same key with ath of that token. The response has a new token "+
					"in x-auth. sessionEndsAt is the time after which only a login helps."),
		rest.Post("/auth/logout", "Log out", rest.User, g.logout).
			TryLast("").
			Doc("logout", "All nodes refuse the token from now on."),
		rest.Get(sessions, "List the caller's sessions, newest first", rest.User, g.list).
			Doc("listSessions", "current marks the session of this request."),
		rest.Delete(sessions, "End one or all sessions of the caller", rest.User, g.end,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"sessionId":"${listSessions.0.sessionId}"}`).
			Doc("endSessions", "Send sessionId to end one session, or all: true to end all sessions, including the session "+
				"of this request."),
	).Extended()
}

type loginRequest struct {
	CountryCode *string `json:"countryCode" doc:"dialling code; with phoneNumber" example:"90"`
	PhoneNumber *string `json:"phoneNumber" doc:"alternative to email" example:"5321234567"`
	Email       *string `json:"email" doc:"alternative to countryCode and phoneNumber"`
	Password    *string `json:"password,omitempty" blank:"ok" maxLength:"1024"`
	DeviceID    *string `json:"deviceId" doc:"the registered device that logs in; stored with the session" maxLength:"64"`

	Ticket    *string    `json:"ticket" doc:"of startPasskeyLogin; with assertion" example:"AAABnYyXMgA" maxLength:"256"`
	Assertion *rest.JSON `json:"assertion" schema:"PasskeyAssertion" doc:"AuthenticationResponseJSON of a passkey"`

	who user.Identifier // read by MissingFields, once
}

// MissingFields requires one valid identifier and a password that is not empty. It stores the identifier that it reads.
func (in *loginRequest) MissingFields() (missing []fault.Problem) {
	add := func(field, message string) {
		missing = append(missing, fault.Problem{Field: field, Message: message})
	}
	if in.Ticket != nil || in.Assertion != nil {
		if in.Ticket == nil {
			add("ticket", "is required with assertion")
		}
		if in.Assertion == nil {
			add("assertion", "is required with ticket")
		}
		return missing
	}
	if in.Password == nil {
		add("password", "is required")
	}
	who, wrong := user.LookUp(in.CountryCode, in.PhoneNumber, in.Email)
	in.who, missing = who, append(missing, wrong...)
	if in.Email == nil && in.CountryCode == nil {
		add("countryCode", "is required without email")
	}
	if in.Email == nil && in.PhoneNumber == nil {
		add("phoneNumber", "is required without email")
	}
	if in.Email == nil && in.CountryCode == nil && in.PhoneNumber == nil {
		add("email", "is required without countryCode and phoneNumber")
	}
	if in.Password != nil && *in.Password == "" {
		add("password", "is required")
	}
	return missing
}

// Validate refuses two identifiers.
func (in *loginRequest) Validate() error {
	if in.Assertion != nil && (in.Email != nil || in.CountryCode != nil || in.PhoneNumber != nil || in.Password != nil) {
		return fault.Invalid("assertion", "replaces identifier and password")
	}
	if in.Email != nil && (in.CountryCode != nil || in.PhoneNumber != nil) {
		return fault.Invalid("email", "send either a phone number or a mail address")
	}
	return nil
}

// passkeyOptions are the same for every caller.
type passkeyOptions struct {
	PublicKey rest.JSON `json:"publicKey" schema:"PasskeyRequest"`
	Ticket    string    `json:"ticket" example:"AAABnYyXMgA"`
}

func (g Group) options(context.Context, rest.Caller, rest.None) (rest.Data[passkeyOptions], error) {
	options, ticket := g.Service.Passkeys.LoginOptions()
	return rest.Data[passkeyOptions]{Data: passkeyOptions{rest.JSON(options), ticket}}, nil
}

// loginAnswer is a challenge, and the outcome of one that a passkey completed.
type loginAnswer struct {
	Challenge  wire.Challenge   `json:"challenge"`
	ExecResult *wire.ExecResult `json:"execResult,omitempty" doc:"extension: present if the start completed the challenge"`
}

func (g Group) byPasskey(ctx context.Context, who rest.Caller, in loginRequest) (rest.Reply[loginAnswer], error) {
	r := session.PasskeyRequest{Ticket: *in.Ticket, Assertion: *in.Assertion, DeviceID: rest.Or(in.DeviceID, ""),
		Origin: client.From(who.IP), Starter: auth.From(who), Proof: proof(who, "")}
	started, result, err := g.Service.LoginByPasskey(ctx, r)
	if err != nil {
		return rest.Reply[loginAnswer]{}, err
	}
	out := begun(started)
	if result != nil {
		out.Body.ExecResult = wire.Exec(*result, true)
		out.Headers = append(out.Headers, wire.Tokens(*result)...)
	}
	return out, nil
}

func begun(s challenge.Started) rest.Reply[loginAnswer] {
	r := wire.Started(s)
	return rest.Reply[loginAnswer]{Headers: r.Headers,
		Body: loginAnswer{Challenge: r.Body.Challenge, ExecResult: r.Body.ExecResult}}
}

func (g Group) login(ctx context.Context, who rest.Caller, in loginRequest) (rest.Reply[loginAnswer], error) {
	if in.Assertion != nil {
		return g.byPasskey(ctx, who, in)
	}
	r := session.LoginRequest{Who: in.who, Password: *in.Password, DeviceID: rest.Or(in.DeviceID, ""),
		Origin: client.From(who.IP), Starter: auth.From(who), Proof: proof(who, "")}
	started, err := g.Service.Login(ctx, r)
	if err != nil {
		return rest.Reply[loginAnswer]{}, err
	}
	return begun(started), nil
}

// proof is the proof of a key that a request carries, for a token.
func proof(who rest.Caller, xAuth string) dpop.Request {
	return dpop.Request{Proof: who.KeyProof, Method: who.Method, Host: who.Host, Path: who.Path, Token: xAuth}
}

type renewed struct {
	ExpiresAt     rest.Time `json:"expiresAt" doc:"of the new token" example:"2026-01-31T10:45:00.000Z"`
	SessionEndsAt rest.Time `json:"sessionEndsAt" doc:"renewals end here" example:"2026-01-31T22:15:00.000Z"`
}

func (g Group) renew(ctx context.Context, who rest.Caller, _ rest.None) (rest.Reply[rest.Data[renewed]], error) {
	var none rest.Reply[rest.Data[renewed]]
	if who.KeyProof == "" {
		return none, dpop.Refused()
	}
	r, err := g.Service.RenewBound(ctx, session.RenewRequest{Claims: who.Renewing.Claims,
		Proof: proof(who, who.Renewing.XAuth), Starter: auth.From(who)})
	if err != nil {
		return none, err
	}
	return rest.Reply[rest.Data[renewed]]{
		Body:    rest.Data[renewed]{Data: renewed{rest.Time{Time: r.ExpiresAt}, rest.Time{Time: r.EndsAt}}},
		Headers: []rest.Header{{Name: "x-auth", Value: r.Token}}}, nil
}

func (g Group) logout(ctx context.Context, who rest.Caller, _ rest.None) (rest.None, error) {
	return rest.None{}, g.Service.Logout(ctx, caller(who))
}

// record is the wire shape of a session (D-EXT-01).
type record struct {
	SessionID   string    `json:"sessionId"`
	CreatedAt   rest.Time `json:"createdAt"`
	LastSeenAt  rest.Time `json:"lastSeenAt"`
	IP          string    `json:"ip"`
	CountryName *string   `json:"countryName" doc:"null if unknown"`
	DeviceBrand string    `json:"deviceBrand"`
	DeviceModel string    `json:"deviceModel"`
	DeviceDesc  string    `json:"deviceDesc"`
	Current     bool      `json:"current" doc:"the session of this request"`
}

func (g Group) list(ctx context.Context, who rest.Caller, _ rest.None) ([]record, error) {
	all, err := g.Service.List(ctx, caller(who))
	if err != nil {
		return nil, err
	}
	language := who.Language
	// the user's own language precedes the default (D-GEN-16)
	if !who.LanguageAsked && slices.ContainsFunc(all, func(s session.Session) bool { return s.Country != "" }) {
		u, err := g.Service.Users.Get(ctx, who.UserID)
		if err != nil {
			return nil, err
		}
		language = cmp.Or(u.Language, language)
	}
	out := make([]record, len(all))
	for i, s := range all {
		out[i] = record{SessionID: s.ID, CreatedAt: rest.Time{Time: s.CreatedAt}, LastSeenAt: rest.Time{Time: s.LastSeenAt},
			IP: s.IP, CountryName: g.country(s.Country, language),
			DeviceBrand: s.Brand, DeviceModel: s.Model, DeviceDesc: s.Description, Current: s.ID == who.SessionID}
	}
	return out, nil
}

func (g Group) country(code, language string) *string {
	if code != "" {
		code = g.CountryName(code, language)
	}
	return rest.Filled(code)
}

type endRequest struct {
	SessionID *string `json:"sessionId" doc:"alternative to all"`
	All       *bool   `json:"all" doc:"true ends all sessions, including the session of this request"`
}

// Validate requires exactly one of the two.
func (in endRequest) Validate() error {
	switch all := in.All != nil && *in.All; {
	case all && in.SessionID != nil:
		return fault.Invalid("sessionId", "send either sessionId or all")
	case !all && in.SessionID == nil:
		return fault.Invalid("sessionId", "is required unless all is true")
	}
	return nil
}

type ended struct {
	Ended int `json:"ended"`
}

func (g Group) end(ctx context.Context, who rest.Caller, in endRequest) (rest.Data[ended], error) {
	if in.SessionID == nil {
		n, err := g.Service.EndAll(ctx, caller(who))
		return rest.Data[ended]{Data: ended{n}}, err
	}
	return rest.Data[ended]{Data: ended{1}}, g.Service.End(ctx, caller(who), *in.SessionID)
}

func caller(who rest.Caller) session.Caller {
	return session.Caller{By: who.By(), SessionID: who.SessionID}
}
