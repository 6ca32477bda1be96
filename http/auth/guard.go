// Package auth authenticates and authorizes callers: one edge.Guard per credential of section 5
// of the interface, and Authorize for audiences. Tokens are verified in memory. Revocations and
// roles are snapshots of the node, which the change feed keeps current (D-AUTH-01, 03). Only
// the signature of a device reads the database, where it is consumed. DENY blocks endpoints
// that are open to users, ALLOW and AUDIT permit endpoints of administrators, and the role
// admin permits everything.
package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/netip"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/http/edge"
	"castellan/http/rest"
)

// Guards holds the data and services of the guards.
type Guards struct {
	Tokens interface {
		Verify(class token.Class, raw string) (token.Claims, error)
	}
	// Ended is Verify for a token whose time may be over (token.Issuer.VerifyEnded); it is required if an endpoint renews.
	Ended func(class token.Class, raw string) (token.Claims, error)
	// Proofs verifies the proofs of session keys. If it is set, every request with the token of a session that is bound to
	// a key needs a proof (sessions.bind: requests); otherwise only a renewal does.
	Proofs *dpop.Verifier
	// Live reports whether a session is still valid.
	Live func(userID, sessionID string, sv int64) bool
	// Foreign accepts the tokens of other login services, where a request may bear one; nil: there are none.
	Foreign Foreign
	// Blocked reports whether a rule of the firewall blocks a user at an endpoint; nil: there are no rules. BasePath is
	// the part of a path before that of its endpoint.
	Blocked  func(key, userID string) bool
	BasePath string
	// Feed reports whether the snapshots, including the keys, are current.
	Feed Feed
	// Judge reads the node's snapshot of roles and grants.
	Judge func(userID, method, path string) resource.Verdict
	// MayWrite checks by the same snapshot whether a caller may decide a matter of a user; it is
	// required if an endpoint declares the users that its requests name.
	MayWrite func(caller, userID string, m resource.Matter) error
	// Geo checks the country of requests; nil: all countries are allowed.
	Geo *Geo
	// AllowsIP reads the node's snapshot of allowed addresses; it is required if an endpoint is
	// IPFiltered (D-AUTH-09).
	AllowsIP func(userID string, from netip.Addr) bool
	Tenant   string
	// Cron names the scheduled client whose header this is, by the node's
	// snapshot of keys.
	Cron func(header string) (client string, ok bool)
	// Service returns the service client whose header this is, by the node's snapshot of
	// keys; JudgeRole judges by the same snapshot of grants as Judge.
	Service   func(header string, from netip.Addr) (servicekey.Client, error)
	JudgeRole func(role, method, path string) resource.Verdict
	// Devices verifies the signatures of registered devices; without it no endpoint can require one.
	Devices interface {
		Present(ctx context.Context, r device.Request) (device.Device, error)
	}
}

// Feed is the guards' view of the feed that keeps snapshots current; see change.Reader.
type Feed interface {
	Mark() time.Time
	Holds(mark time.Time) bool
	CatchUp(ctx context.Context) error
	Poll(ctx context.Context) error
}

var errNoCredential = errors.New("auth: no valid credential")

// withFreshSnapshot returns the result of judge on snapshots that are still fresh when judge
// returns. A node that was stopped for a while, or could not read the feed, reads it first. A
// refusal needs no fresh snapshot: a revoked session stays revoked.
func withFreshSnapshot(ctx context.Context, feed Feed, judge func() error) error {
	for range 2 {
		mark := feed.Mark()
		if err := judge(); err != nil || feed.Holds(mark) {
			return err
		}
		if err := feed.CatchUp(ctx); err != nil {
			break
		}
	}
	return unsure()
}

func unsure() error {
	return fault.New(fault.Unavailable, "credentials cannot be checked at the moment").After(time.Second)
}

// Fresh calls judge on snapshots that are still fresh when it returns, perhaps twice. It returns the error of judge;
// UNAVAILABLE if the feed cannot be read.
func (g Guards) Fresh(ctx context.Context, judge func() error) error {
	return withFreshSnapshot(ctx, g.Feed, judge)
}

// User authenticates the session of a raw request, by the header x-auth.
func (g Guards) User(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	return g.session(ctx, r)
}

// Table is the guard of each credential that is served.
func (g Guards) Table() map[rest.Credential]edge.Guard {
	table := map[rest.Credential]edge.Guard{
		rest.User:            g.session,
		rest.Tenant:          g.tenant,
		rest.PAuth:           g.pauth,
		rest.PAuthOrDevice:   g.pauthOrDevice,
		rest.OTAuth:          g.otauth,
		rest.TenantOrCron:    g.tenantOrCron,
		rest.TenantOrService: g.tenantOrService,
		rest.Service:         g.service,
	}
	if g.Devices != nil {
		table[rest.Device] = g.device
	}
	return table
}

// device authenticates the registered device that signed the request. The endpoint must
// request the hash of the body (HashBody).
func (g Guards) device(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	who := r.Caller
	d, err := g.Devices.Present(ctx, Signed(who))
	if err == nil {
		who.DeviceID, who.OwnerID = d.ID, d.UserID
	}
	return who, err
}

// Signed is the request in the form that its device signature must cover.
func Signed(who rest.Caller) device.Request {
	target := who.Path
	if who.RawQuery != "" {
		target += "?" + who.RawQuery
	}
	return device.Request{Proof: who.DeviceSignature, Method: who.Method, Target: target, HasBody: who.HasBody,
		BodyHash: who.BodyHash}
}

// tenant is session for endpoints marked with the tenant: a sent tenant-id
// must be the token's, which is this deployment's (D-AUTH-02).
func (g Guards) tenant(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	who, err := g.session(ctx, r)
	if err != nil {
		return who, err
	}
	return who, g.sameTenant(r)
}

func (g Guards) sameTenant(r *edge.Request) error {
	if sent := r.Header("tenant-id"); sent != "" && subtle.ConstantTimeCompare([]byte(sent), []byte(g.Tenant)) != 1 {
		return fault.New(fault.TenantMismatch, "the session belongs to another tenant")
	}
	return nil
}

// tenantOrCron accepts a scheduled client or a session. If both are sent, one valid credential
// suffices (D-AUTH-07). The key is checked first, because it needs no role.
func (g Guards) tenantOrCron(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	raw := r.Header("cron-auth")
	if raw == "" {
		return g.tenant(ctx, r)
	}
	var client string
	var ok bool
	if err := withFreshSnapshot(ctx, g.Feed, func() error {
		if client, ok = g.Cron(raw); !ok {
			return errNoCredential
		}
		return nil
	}); err != nil && err != errNoCredential {
		return r.Caller, err
	}
	switch {
	case ok:
		who := r.Caller
		who.Cron = client
		return who, g.sameTenant(r)
	case r.Header("x-auth") != "":
		return g.tenant(ctx, r)
	}
	return r.Caller, fault.New(fault.Unauthenticated, "cron-auth is not the key of a client")
}

// tenantOrService accepts a service client as well as a session, but not both in one
// request: an action has one author (D-INT-01).
func (g Guards) tenantOrService(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	if r.Header("service-auth") == "" {
		return g.tenant(ctx, r)
	}
	return g.service(ctx, r)
}

// service accepts a service client alone.
func (g Guards) service(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	who, raw := r.Caller, r.Header("service-auth")
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "service-auth is needed")
	}
	if r.Header("x-auth") != "" {
		return who, fault.New(fault.Unauthenticated, "send either x-auth or service-auth")
	}
	err := withFreshSnapshot(ctx, g.Feed, func() error {
		client, err := g.Service(raw, who.IP)
		who.Service, who.ServiceRole = client.Name, client.Role
		return err
	})
	if fault.CodeOf(err) == fault.IPNotAllowed { // the key is right: the audit names its client
		return who, err
	}
	if err != nil {
		return r.Caller, err
	}
	return who, g.sameTenant(r)
}

func (g Guards) pauth(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	return g.Challenge(ctx, r.Caller, r.Header("p-auth"))
}

// Challenge adds the claims of a p-auth token to a caller; the socket uses it with tokens from
// other places than the header.
func (g Guards) Challenge(ctx context.Context, who rest.Caller, raw string) (rest.Caller, error) {
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "p-auth is needed")
	}
	c, err := g.Tokens.Verify(token.PAuth, raw)
	if err != nil {
		return who, err
	}
	who.ChallengeID, who.TokenExpires = c.ChallengeID, c.ExpiresAt
	return g.Geo.challenge(ctx, who)
}

// pauthOrDevice lets a registered device answer without a token. Its signature is verified
// with the answer, because it covers the decision (D-2FA-06). Without a token, the country is
// not checked (D-GEO-02).
func (g Guards) pauthOrDevice(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	if r.Header("p-auth") == "" && r.Caller.DeviceSignature != "" {
		return r.Caller, nil
	}
	return g.pauth(ctx, r)
}

// otauth accepts a one-time token that this service issued. The operation that consumes the
// token checks its use, its account and the country of the request (D-AUTH-10).
func (g Guards) otauth(_ context.Context, r *edge.Request) (rest.Caller, error) {
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

// Authorize checks the audience of an endpoint (D-AUTH-03) and then, if the endpoint requires
// it, the caller's allowed addresses (D-AUTH-09). A caller without a session, such as the
// bearer of a challenge's token, has no roles. Endpoints of administrators are closed to it,
// and DENY does not apply to it.
//
// A role that was granted before a login counts from the first request of the session. If the
// session is newer than the node's snapshot and would get less, the feed is read first.
func (g Guards) Authorize(ctx context.Context, who rest.Caller, e *rest.Endpoint) error {
	permitted := g.permits(&who, e)
	if g.newer(who) && (!permitted || g.claimsMore(who, e)) {
		if err := g.Feed.Poll(ctx); err != nil {
			return unsure()
		}
		permitted = g.permits(&who, e)
	}
	if !permitted {
		return fault.New(fault.Forbidden, "not allowed")
	}
	if e.IPFilter && (g.AllowsIP == nil || !g.AllowsIP(who.UserID, who.IP)) {
		return fault.New(fault.IPNotAllowed, "the account does not allow this from your address")
	}
	return nil
}

// newer reports whether the caller's session began after the last read of the
// feed. The clocks of the nodes may differ by change.Bound.
func (g Guards) newer(who rest.Caller) bool {
	return who.SessionID != "" && g.Feed != nil && who.SessionID >= id.Before(g.Feed.Mark().Add(-change.Bound))
}

// claimsMore reports whether the token has a role other than the role user, and the snapshot
// does not let its account act as an administrator. The claim itself permits nothing.
func (g Guards) claimsMore(who rest.Caller, e *rest.Endpoint) bool {
	return e.Audience == rest.SelfOrAdmin && !g.Judge(who.UserID, e.Method, e.Path).MayAdminister() &&
		slices.ContainsFunc(who.Roles, func(role string) bool { return role != user.RoleUser })
}

func (g Guards) permits(who *rest.Caller, e *rest.Endpoint) bool {
	switch e.Audience {
	case rest.Public, rest.DeviceOwner:
		return true
	case rest.ServiceClient:
		return who.Service != ""
	case rest.ServiceRole:
		return who.Service != "" && g.verdict(*who, e).MayAdminister()
	case rest.SelfUser, rest.SelfOrAdmin:
		if who.UserID == "" {
			if who.ChallengeID != "" || who.TokenID != "" || e.Credential == rest.PAuthOrDevice || who.Cron != "" &&
				e.Credential == rest.TenantOrCron {
				return true
			}
		} else if !g.Judge(who.UserID, e.Method, e.Path).Denied() {
			return true
		}
	case rest.Admin:
		if v := g.verdict(*who, e); v.Admin || v.MayAdminister() && !e.Reserved {
			return true
		}
	}
	return false
}

// verdict is the caller's permission at an endpoint: of the account, or of the role of a
// service client. A caller without both may not use endpoints of administrators.
func (g Guards) verdict(who rest.Caller, e *rest.Endpoint) resource.Verdict {
	switch {
	case who.UserID != "":
		return g.Judge(who.UserID, e.Method, e.Path)
	case who.ServiceRole != "" && (e.Credential == rest.TenantOrService || e.Audience == rest.ServiceRole):
		return g.JudgeRole(who.ServiceRole, e.Method, e.Path)
	}
	return resource.Verdict{}
}

// ActsAsAdmin reports whether a caller whom Authorize accepted may act for other accounts: at
// an endpoint of audience self-or-admin a grant acts as the role admin.
func (g Guards) ActsAsAdmin(who rest.Caller, e *rest.Endpoint) bool {
	return who.UserID != "" && g.Judge(who.UserID, e.Method, e.Path).MayAdminister()
}

// Permits reports, by this node's snapshot, whether Authorize accepts a caller, and whether
// the caller may act for other accounts.
func (g Guards) Permits(who rest.Caller, e *rest.Endpoint) (permitted, asAdmin bool) {
	return g.permits(&who, e), g.ActsAsAdmin(who, e)
}

// Audited reports whether the call of an endpoint gets its own audit row, because its grant is AUDIT.
func (g Guards) Audited(who rest.Caller, e *rest.Endpoint) bool {
	return !e.Reserved && g.verdict(who, e).Audited()
}
