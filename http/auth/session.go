package auth

import (
	"context"
	"crypto/subtle"

	"castellan/domain/access/dpop"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/token"
	"castellan/http/edge"
	"castellan/http/rest"
)

func (g Guards) session(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	return g.sessionAt(ctx, r, Signing{r.Caller.Method, r.Caller.Host, r.Caller.Path})
}

// Signing is the request that a proof of the session key names.
type Signing struct{ Method, Host, Path string }

// UserAt is User for a request that another server forwards: a proof names the original request.
func (g Guards) UserAt(ctx context.Context, r *edge.Request, original Signing) (rest.Caller, error) {
	return g.sessionAt(ctx, r, original)
}

func (g Guards) sessionAt(ctx context.Context, r *edge.Request, signing Signing) (rest.Caller, error) {
	who := r.Caller
	raw := r.Header("x-auth")
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "x-auth is needed")
	}
	renews := r.Endpoint != nil && r.Endpoint.Renewal
	c, err := g.claims(ctx, raw, renews)
	if err == nil && renews {
		who.Renewing = &rest.Renewing{XAuth: raw, Claims: c}
	} else if err == nil {
		err = g.proved(ctx, r, raw, c, signing)
	}
	if err != nil {
		return r.Caller, err
	}
	who.UserID, who.SessionID, who.Roles, who.TokenExpires = c.Subject, c.SessionID, c.Roles, c.ExpiresAt
	if who.KeyThumbprint = c.Thumbprint; who.KeyProof != "" && !renews {
		who.KeyToken, who.KeyProved = raw, r.Proved()
	}
	return who, g.Geo.user(who.UserID, who)
}

// proved checks the proof that a token of a bound session needs where sessions.bind is requests. It is used up once for
// a request, however often the session is checked. DPOP_INVALID, UNAVAILABLE.
func (g Guards) proved(ctx context.Context, r *edge.Request, raw string, c token.Claims, signing Signing) error {
	if g.Proofs == nil || c.Thumbprint == "" || r.Proved() {
		return nil
	}
	p, err := g.Proofs.Check(dpop.Request{Proof: r.Caller.KeyProof, Method: signing.Method, Host: signing.Host,
		Path: signing.Path, Token: raw})
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(p.Thumbprint), []byte(c.Thumbprint)) != 1 {
		return dpop.Refused()
	}
	if err := g.Proofs.Spend(ctx, p); err != nil {
		return err
	}
	r.SetProved()
	return nil
}

// Session returns the claims of an x-auth token with a valid session, which comes without the request of its client.
// UNAUTHENTICATED, TOKEN_EXPIRED, TOKEN_REVOKED; DPOP_INVALID if such a token needs a proof; UNAVAILABLE if the node
// cannot check the session.
func (g Guards) Session(ctx context.Context, raw string) (token.Claims, error) {
	c, err := g.claims(ctx, raw, false)
	if err == nil && g.Proofs != nil && c.Thumbprint != "" {
		return token.Claims{}, dpop.Refused()
	}
	return c, err
}

// claims returns the claims of an x-auth token with a valid session. With renews, the time of a token with a key may
// be over.
func (g Guards) claims(ctx context.Context, raw string, renews bool) (c token.Claims, err error) {
	err = withFreshSnapshot(ctx, g.Feed, func() (err error) {
		c, err = g.Tokens.Verify(token.XAuth, raw)
		if renews && fault.CodeOf(err) == fault.TokenExpired {
			late := err
			if c, err = g.Ended(token.XAuth, raw); err == nil && c.Thumbprint == "" {
				c, err = token.Claims{}, late
			}
		}
		if err == nil && !g.Live(c.Subject, c.SessionID, c.SV) {
			err = fault.New(fault.TokenRevoked, "the session has ended")
		}
		return err
	})
	return c, err
}
