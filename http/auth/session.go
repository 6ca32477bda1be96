package auth

import (
	"context"
	"crypto/subtle"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/token"
	"castellan/domain/proof/dpop"
	"castellan/http/edge"
	"castellan/http/rest"
)

func (g Guards) session(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	return g.bearerAt(ctx, r, Signing{Method: r.Caller.Method, Host: r.Caller.Host, Path: r.Caller.Path}, nil)
}

// Signing is the request that a proof of the session key names.
type Signing struct {
	Method, Host, Path string
	forwarded          bool // for another service
}

// proved checks the proof that a token of a bound session needs where sessions.bind is requests. It is used up once for
// a request, however often the session is checked. DPOP_INVALID, UNAVAILABLE.
func (g Guards) proved(ctx context.Context, r *edge.Request, raw string, c token.Claims, signing Signing) error {
	if g.Proofs == nil || c.Thumbprint == "" || r.Proved() {
		return nil
	}
	p, err := g.Proofs.Check(dpop.Request{Proof: r.Caller.KeyProof, Method: signing.Method, Host: signing.Host,
		Path: signing.Path, Token: raw, Forwarded: signing.forwarded})
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
