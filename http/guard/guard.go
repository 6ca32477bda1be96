// Package guard establishes who is calling and judges what they may do: one
// rest.Guard per credential of section 5, and Authorize for audiences. None of
// it reads the database but the signature of a device, which is used up there:
// tokens are verified in memory, revocation and roles are the node's snapshots,
// kept true by the change feed (D-AUTH-01, 03). DENY
// keeps out of what is open to users, ALLOW and AUDIT let in where only
// administrators may go, and the role admin passes everything.
package guard

import (
	"context"
	"crypto/subtle"
	"time"

	"castellan/domain/device"
	"castellan/domain/fault"
	"castellan/domain/resource"
	"castellan/domain/token"
	"castellan/http/rest"
)

// Guards holds what the guards look at.
type Guards struct {
	Tokens interface {
		Verify(class token.Class, raw string) (token.Claims, error)
	}
	// Live reports whether a session may still be used.
	Live func(userID, sessionID string, sv int64) bool
	// Fresh reports whether the snapshots can be relied on.
	Fresh func() bool
	// Judge looks into the node's snapshot of roles and grants.
	Judge  func(userID, method, path string) resource.Verdict
	Tenant string
	// Devices judges the signatures of registered devices; without it no endpoint
	// can ask for one.
	Devices interface {
		Present(ctx context.Context, r device.Request) (device.Device, error)
	}
}

// Table is the guard of each credential that is served.
func (g Guards) Table() map[rest.Credential]rest.Guard {
	table := map[rest.Credential]rest.Guard{
		rest.User:          g.session,
		rest.Tenant:        g.tenant,
		rest.PAuth:         g.pauth,
		rest.PAuthOrDevice: g.pauthOrDevice,
		rest.OTAuth:        g.otauth,
	}
	if g.Devices != nil {
		table[rest.Device] = g.device
	}
	return table
}

// device establishes the registered device that signed the request. The endpoint
// must ask for the hash of the body (HashBody).
func (g Guards) device(ctx context.Context, r *rest.Request) (rest.Caller, error) {
	who := r.Caller
	d, err := g.Devices.Present(ctx, Signed(who))
	if err == nil {
		who.DeviceID, who.OwnerID = d.ID, d.UserID
	}
	return who, err
}

// Signed is a request as its device signature must describe it.
func Signed(who rest.Caller) device.Request {
	target := who.Path
	if who.RawQuery != "" {
		target += "?" + who.RawQuery
	}
	return device.Request{Proof: who.DeviceSignature, Method: who.Method, Target: target, HasBody: who.HasBody, BodyHash: who.BodyHash}
}

func (g Guards) session(_ context.Context, r *rest.Request) (rest.Caller, error) {
	who := r.Caller
	raw := r.Header("x-auth")
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "x-auth is needed")
	}
	c, err := g.Tokens.Verify(token.XAuth, raw)
	if err != nil {
		return who, err
	}
	if !g.Fresh() {
		return who, fault.New(fault.Unavailable, "sessions cannot be checked at the moment").After(time.Second)
	}
	if !g.Live(c.Subject, c.SessionID, c.SV) {
		return who, fault.New(fault.TokenRevoked, "the session has ended")
	}
	who.UserID, who.SessionID, who.Roles, who.TokenExpires = c.Subject, c.SessionID, c.Roles, c.ExpiresAt
	return who, nil
}

// tenant is session for endpoints marked with the tenant: a sent tenant-id
// must be the token's, which is this deployment's (D-AUTH-02).
func (g Guards) tenant(ctx context.Context, r *rest.Request) (rest.Caller, error) {
	who, err := g.session(ctx, r)
	if err != nil {
		return who, err
	}
	if sent := r.Header("tenant-id"); sent != "" && subtle.ConstantTimeCompare([]byte(sent), []byte(g.Tenant)) != 1 {
		return who, fault.New(fault.TenantMismatch, "the session belongs to another tenant")
	}
	return who, nil
}

func (g Guards) pauth(_ context.Context, r *rest.Request) (rest.Caller, error) {
	return g.Challenge(r.Caller, r.Header("p-auth"))
}

// Challenge adds to a caller what a p-auth token says; the socket uses it with
// tokens from other places than the header.
func (g Guards) Challenge(who rest.Caller, raw string) (rest.Caller, error) {
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "p-auth is needed")
	}
	c, err := g.Tokens.Verify(token.PAuth, raw)
	if err != nil {
		return who, err
	}
	who.ChallengeID, who.TokenExpires = c.ChallengeID, c.ExpiresAt
	return who, nil
}

// pauthOrDevice lets a registered device answer without a token; its signature
// is judged with the answer, because it signs the decision (D-2FA-06).
func (g Guards) pauthOrDevice(ctx context.Context, r *rest.Request) (rest.Caller, error) {
	if r.Header("p-auth") == "" && r.Caller.DeviceSignature != "" {
		return r.Caller, nil
	}
	return g.pauth(ctx, r)
}

// otauth lets a one-time token in that was made here. Whether it was used
// already is judged by the unit that uses it up (D-AUTH-10).
func (g Guards) otauth(_ context.Context, r *rest.Request) (rest.Caller, error) {
	who := r.Caller
	raw := r.Header("ot-auth")
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "ot-auth is needed")
	}
	c, err := g.Tokens.Verify(token.OTAuth, raw)
	if err != nil {
		return who, err
	}
	who.TokenID, who.TokenExpires = c.ID, c.ExpiresAt
	return who, nil
}

// Authorize judges the audience of an endpoint (D-AUTH-03). A caller that no
// session names, such as the bearer of a challenge's token, has no roles: what
// is meant for administrators is closed to it, and nothing can be denied to it.
func (g Guards) Authorize(_ context.Context, who rest.Caller, e *rest.Endpoint) error {
	switch e.Audience {
	case rest.Public, rest.DeviceOwner:
		return nil
	case rest.SelfUser, rest.SelfOrAdmin:
		if who.UserID == "" {
			if who.ChallengeID != "" || who.TokenID != "" || e.Credential == rest.PAuthOrDevice {
				return nil
			}
		} else if !g.Judge(who.UserID, e.Method, e.Path).Denied() {
			return nil
		}
	case rest.Admin:
		if who.UserID == "" {
			break
		}
		if v := g.Judge(who.UserID, e.Method, e.Path); v.Admin || v.Acts() && !e.Reserved {
			return nil
		}
	}
	return fault.New(fault.Forbidden, "not allowed")
}

// ActsAsAdmin tells whether a caller whom Authorize let in may act for others:
// at an endpoint of audience self-or-admin a grant acts as the role admin.
func (g Guards) ActsAsAdmin(who rest.Caller, e *rest.Endpoint) bool {
	return who.UserID != "" && g.Judge(who.UserID, e.Method, e.Path).Acts()
}

// Audited tells whether the call of an endpoint is worth an audit row of its
// own, because a grant says AUDIT.
func (g Guards) Audited(who rest.Caller, e *rest.Endpoint) bool {
	if who.UserID == "" || e.Reserved {
		return false
	}
	return g.Judge(who.UserID, e.Method, e.Path).Audited()
}
