// Package auth establishes who is calling and judges what they may do: one
// edge.Guard per credential of section 5 of the interface, and Authorize for audiences. None of
// it reads the database but the signature of a device, which is used up there:
// tokens are verified in memory, revocation and roles are the node's snapshots,
// kept true by the change feed (D-AUTH-01, 03). DENY
// keeps out of what is open to users, ALLOW and AUDIT let in where only
// administrators may go, and the role admin passes everything.
package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/netip"
	"slices"
	"time"

	"castellan/domain/access/device"
	"castellan/domain/access/resource"
	"castellan/domain/access/servicekey"
	"castellan/domain/access/user"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
	"castellan/http/edge"
	"castellan/http/rest"
)

// Guards holds what the guards look at.
type Guards struct {
	Tokens interface {
		Verify(class token.Class, raw string) (token.Claims, error)
	}
	// Live reports whether a session may still be used.
	Live func(userID, sessionID string, sv int64) bool
	// Feed reports whether the snapshots, that of keys included, can be relied on.
	Feed Feed
	// Judge looks into the node's snapshot of roles and grants.
	Judge func(userID, method, path string) resource.Verdict
	// MayWrite judges by the same snapshot whether a caller may decide a matter of a user;
	// it is needed where an endpoint declares the users that its requests name.
	MayWrite func(caller, userID string, m resource.Matter) error
	// Geo judges from where accounts are used; nil: they may be from everywhere.
	Geo *Geo
	// AllowsIP looks into the node's snapshot of allowed addresses; it is needed
	// where an endpoint is IPFiltered (D-AUTH-09).
	AllowsIP func(userID string, from netip.Addr) bool
	Tenant   string
	// Cron names the scheduled client whose header this is, by the node's
	// snapshot of keys.
	Cron func(header string) (client string, ok bool)
	// Service returns the service client whose header this is, by the node's snapshot of
	// keys; JudgeRole judges by the same snapshot of grants as Judge.
	Service   func(header string, from netip.Addr) (servicekey.Client, error)
	JudgeRole func(role, method, path string) resource.Verdict
	// Devices judges the signatures of registered devices; without it no endpoint
	// can ask for one.
	Devices interface {
		Present(ctx context.Context, r device.Request) (device.Device, error)
	}
}

// Feed is what the guards know of the feed by which snapshots are kept true; see
// change.Reader.
type Feed interface {
	Mark() time.Time
	Holds(mark time.Time) bool
	CatchUp(ctx context.Context) error
	Poll(ctx context.Context) error
}

var errNobody = errors.New("guard: nobody")

// withFreshSnapshot returns what judge says by snapshots that are still fresh when
// it has judged, however long that took. A node that was stopped for a while, or
// could not read the feed, reads it first. A refusal needs no proof: a session
// that was revoked stays revoked.
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
	}
	if g.Devices != nil {
		table[rest.Device] = g.device
	}
	return table
}

// device establishes the registered device that signed the request. The endpoint
// must ask for the hash of the body (HashBody).
func (g Guards) device(ctx context.Context, r *edge.Request) (rest.Caller, error) {
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
	return device.Request{Proof: who.DeviceSignature, Method: who.Method, Target: target, HasBody: who.HasBody,
		BodyHash: who.BodyHash}
}

func (g Guards) session(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	who := r.Caller
	raw := r.Header("x-auth")
	if raw == "" {
		return who, fault.New(fault.Unauthenticated, "x-auth is needed")
	}
	c, err := g.Session(ctx, raw)
	if err != nil {
		return who, err
	}
	who.UserID, who.SessionID, who.Roles, who.TokenExpires = c.Subject, c.SessionID, c.Roles, c.ExpiresAt
	return who, g.Geo.user(who.UserID, who)
}

// Session returns the claims of an x-auth token whose session lives. UNAUTHENTICATED,
// TOKEN_EXPIRED, TOKEN_REVOKED; UNAVAILABLE where the node does not know whether it lives.
func (g Guards) Session(ctx context.Context, raw string) (c token.Claims, err error) {
	err = withFreshSnapshot(ctx, g.Feed, func() (err error) {
		if c, err = g.Tokens.Verify(token.XAuth, raw); err == nil && !g.Live(c.Subject, c.SessionID, c.SV) {
			err = fault.New(fault.TokenRevoked, "the session has ended")
		}
		return err
	})
	return c, err
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

// tenantOrCron lets a scheduled client in where the interface names it, as well
// as a session. Of two credentials a valid one suffices (D-AUTH-07): the key is
// looked at first, for its holder may be anybody and no role stands against it.
func (g Guards) tenantOrCron(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	raw := r.Header("cron-auth")
	if raw == "" {
		return g.tenant(ctx, r)
	}
	var client string
	var ok bool
	if err := withFreshSnapshot(ctx, g.Feed, func() error {
		if client, ok = g.Cron(raw); !ok {
			return errNobody
		}
		return nil
	}); err != nil && err != errNobody {
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
	raw := r.Header("service-auth")
	if raw == "" {
		return g.tenant(ctx, r)
	}
	who := r.Caller
	if r.Header("x-auth") != "" {
		return who, fault.New(fault.Unauthenticated, "send either x-auth or service-auth")
	}
	err := withFreshSnapshot(ctx, g.Feed, func() error {
		client, err := g.Service(raw, who.IP)
		who.Service, who.ServiceRole = client.Name, client.Role
		return err
	})
	if err != nil {
		return r.Caller, err
	}
	return who, g.sameTenant(r)
}

func (g Guards) pauth(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	return g.Challenge(ctx, r.Caller, r.Header("p-auth"))
}

// Challenge adds to a caller what a p-auth token says; the socket uses it with
// tokens from other places than the header.
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

// pauthOrDevice lets a registered device answer without a token; its signature
// is judged with the answer, because it signs the decision (D-2FA-06). Without
// a token no country is asked for (D-GEO-02).
func (g Guards) pauthOrDevice(ctx context.Context, r *edge.Request) (rest.Caller, error) {
	if r.Header("p-auth") == "" && r.Caller.DeviceSignature != "" {
		return r.Caller, nil
	}
	return g.pauth(ctx, r)
}

// otauth lets a one-time token in that was made here. Whether it was used
// already, whose it is, and from where that account may be used is judged by
// what uses it up (D-AUTH-10).
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

// Authorize judges the audience of an endpoint (D-AUTH-03) and then, where the
// endpoint asks for it, the caller's allowed addresses (D-AUTH-09). A caller that no
// session names, such as the bearer of a challenge's token, has no roles: what
// is meant for administrators is closed to it, and nothing can be denied to it.
//
// A role that was given before a login counts from its first request on: where a
// session newer than what this node knows would get less, the feed is read first.
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

// claimsMore reports whether the token has a role beyond that of every user, and
// the snapshot does not let its account act as an administrator. The claim itself
// opens nothing.
func (g Guards) claimsMore(who rest.Caller, e *rest.Endpoint) bool {
	return e.Audience == rest.SelfOrAdmin && !g.Judge(who.UserID, e.Method, e.Path).Acts() &&
		slices.ContainsFunc(who.Roles, func(role string) bool { return role != user.RoleUser })
}

func (g Guards) permits(who *rest.Caller, e *rest.Endpoint) bool {
	switch e.Audience {
	case rest.Public, rest.DeviceOwner:
		return true
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
		if v := g.verdict(*who, e); v.Admin || v.Acts() && !e.Reserved {
			return true
		}
	}
	return false
}

// verdict is what the caller may do at an endpoint: that of the account, or of the role of a
// service client. A caller without both may do nothing that is meant for administrators.
func (g Guards) verdict(who rest.Caller, e *rest.Endpoint) resource.Verdict {
	switch {
	case who.UserID != "":
		return g.Judge(who.UserID, e.Method, e.Path)
	case who.ServiceRole != "" && e.Credential == rest.TenantOrService:
		return g.JudgeRole(who.ServiceRole, e.Method, e.Path)
	}
	return resource.Verdict{}
}

// ActsAsAdmin reports whether a caller whom Authorize let in may act for others:
// at an endpoint of audience self-or-admin a grant acts as the role admin.
func (g Guards) ActsAsAdmin(who rest.Caller, e *rest.Endpoint) bool {
	return who.UserID != "" && g.Judge(who.UserID, e.Method, e.Path).Acts()
}

// Permits tells, by this node's snapshot, whether Authorize lets a caller in, and
// whether as one who may act for others.
func (g Guards) Permits(who rest.Caller, e *rest.Endpoint) (permitted, asAdmin bool) {
	return g.permits(&who, e), g.ActsAsAdmin(who, e)
}

// Audited reports whether the call of an endpoint is worth an audit row of its
// own, because a grant says AUDIT.
func (g Guards) Audited(who rest.Caller, e *rest.Endpoint) bool {
	return !e.Reserved && g.verdict(who, e).Audited()
}
