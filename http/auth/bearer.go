package auth

import (
	"context"
	"net/netip"
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/token"
	"castellan/http/edge"
	"castellan/http/rest"
)

// ForeignUser is the user of a token of another login service. Session names the session there, and Login all sessions
// of that login.
type ForeignUser struct{ UserID, Session, Login string }

// Foreign returns the active account of a token of another login service. ok is false for any other token. It reads the
// database.
type Foreign func(ctx context.Context, raw string) (u ForeignUser, ok bool, err error)

// bearer is the user of a credential. token is an x-auth; a foreign one has no claims.
type bearer struct {
	ForeignUser // Login is empty for an x-auth
	token       string
	claims      token.Claims
}

// bearerOf returns the user of the credential of a request: x-auth, or a bearer token where foreign is not nil. It is
// the only place that reads these headers. UNAUTHENTICATED without one, and the errors of claims and foreign.
func bearerOf(ctx context.Context, r *edge.Request, claims func(context.Context, string) (token.Claims, error),
	foreign Foreign) (b bearer, err error) {
	if b.token = r.Header("x-auth"); b.token != "" {
		b.claims, err = claims(ctx, b.token)
		b.UserID, b.Session = b.claims.Subject, b.claims.SessionID
		return b, err
	}
	if foreign == nil {
		return b, errNoBearer
	}
	if scheme, raw, _ := strings.Cut(r.Header("authorization"), " "); strings.EqualFold(scheme, "bearer") {
		u, ok, err := foreign(ctx, strings.TrimSpace(raw))
		if ok || err != nil {
			return bearer{ForeignUser: u}, err
		}
	}
	return b, errNoBearer
}

var errNoBearer = fault.New(fault.Unauthenticated, "x-auth is needed")

// Bearer is User for a request that another server forwards, whose user may also log in at another service: a proof
// names the original request. Every user is judged in the same way. Errors: those of User and of Foreign.
func (g Guards) Bearer(ctx context.Context, r *edge.Request, original Signing) (rest.Caller, error) {
	original.forwarded = true
	return g.bearerAt(ctx, r, original, g.Foreign)
}

// bearerAt turns the credential of a request into the caller and judges it.
func (g Guards) bearerAt(ctx context.Context, r *edge.Request, signing Signing, foreign Foreign) (rest.Caller, error) {
	who := r.Caller
	renews := r.Endpoint != nil && r.Endpoint.Renewal
	b, err := bearerOf(ctx, r, func(ctx context.Context, raw string) (token.Claims, error) {
		return g.claims(ctx, raw, renews)
	}, foreign)
	if c := b.claims; err == nil && renews {
		who.Renewing = &rest.Renewing{XAuth: b.token, Claims: c}
	} else if err == nil {
		err = g.proved(ctx, r, b.token, c, signing)
	}
	if err != nil {
		return r.Caller, err
	}
	who.UserID, who.SessionID, who.Login = b.UserID, b.Session, b.Login
	who.Roles, who.TokenExpires = b.claims.Roles, b.claims.ExpiresAt
	if who.KeyThumbprint = b.claims.Thumbprint; who.KeyProof != "" && !renews {
		who.KeyToken, who.KeyProved = b.token, r.Proved()
	}
	return who, g.Geo.user(who.UserID, who)
}

// Origin is where a session began.
type Origin struct {
	IP      netip.Addr
	Country string
}

// Represented judges a user in whose name a service client calls, by the token of that user. The judges are the
// firewall's rules that block users, and the country from which the session began. from is nil if this service cannot
// know it, because the user logged in elsewhere. ACCESS_DENIED, GEO_BLOCKED.
func (g Guards) Represented(who rest.Caller, userID string, from *Origin) error {
	if g.Blocked != nil && g.Blocked(who.Method+" "+strings.TrimPrefix(who.Path, g.BasePath), userID) {
		return fault.New(fault.AccessDenied, "access is denied")
	}
	if from == nil {
		return nil
	}
	who.IP, who.Country = from.IP, from.Country
	return g.Geo.user(userID, who)
}
