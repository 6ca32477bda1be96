package auth

import (
	"context"
	"net/netip"
	"sync"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/token"
	"castellan/domain/permit/servicekey"
	"castellan/http/edge"
)

// Firewall checks requests at the edge (edge.Options.Firewall), before any credential: by
// resource, resolved address and country. If a rule for the resource targets users, it also
// uses the user of a valid credential (D-GEN-19).
type Firewall struct {
	Evaluator *firewall.Evaluator
	Tokens    interface {
		Verify(class token.Class, raw string) (token.Claims, error)
	}
	// Service returns the service client whose header this is.
	Service func(header string, from netip.Addr) (servicekey.Client, error)
	// Live reports whether a session is still valid, without side effects; Feed reports whether
	// the answer is reliable.
	Live func(userID, sessionID string, sv int64) bool
	Feed Feed
	// Foreign accepts the tokens of other login services at the endpoints that Bears names; nil: there are none.
	Foreign Foreign
	Bears   func(key string) bool
}

// rulings are reused.
var rulings = sync.Pool{New: func() any { return new(firewall.Ruling) }}

// Judge is the hook. Errors: ACCESS_DENIED, which names no rule; RATE_LIMITED with the exact
// time to wait; UNAVAILABLE if a counter cannot be read.
func (f Firewall) Judge(ctx context.Context, r *edge.Request, key string) error {
	c := firewall.Client{IP: r.Caller.IP, Country: r.Caller.Country}
	if edge.HealthCheck(key) {
		return f.health(key, c)
	}
	if f.Feed != nil && !f.Feed.Holds(f.Feed.Mark()) {
		// The rules can have changed. On failure, the known rules apply.
		_ = f.Feed.CatchUp(ctx)
	}
	needs := f.Evaluator.Needs(key)
	if needs.User {
		c.UserID = f.user(ctx, r, key)
	}
	if needs.Service {
		c.Service = f.service(ctx, r)
	}
	ruling := rulings.Get().(*firewall.Ruling)
	defer rulings.Put(ruling)
	if err := f.Evaluator.Check(ratelimit.WithClient(ctx, r), key, c, ruling); err != nil {
		f.Evaluator.Unsure.Add(1)
		return err
	}
	if len(ruling.State) > 0 {
		r.SetHeaderBytes("RateLimit-Policy", ruling.Policy)
		r.SetHeaderBytes("RateLimit", ruling.State)
	}
	switch ruling.Verdict {
	case firewall.Deny:
		r.Caller.UserID, r.Caller.Service = c.UserID, c.Service // for the audit; the request ends here
		return fault.New(fault.AccessDenied, "access is denied")
	case firewall.Count:
		return fault.New(fault.RateLimited, "too many requests; try again later").After(ruling.RetryAfter)
	}
	f.Evaluator.Allowed.Add(1)
	return nil
}

// health checks a health check only against blacklists, and never one from this machine. Rate
// limits, whitelists and a late feed do not stop it: an orchestrator must not end a process
// because of a rule (D-WAF-08).
func (f Firewall) health(key string, c firewall.Client) error {
	if !c.IP.IsLoopback() && f.Evaluator.Blacklisted(key, c) {
		return fault.New(fault.AccessDenied, "access is denied")
	}
	return nil
}

// user is the user of the request's credential; "" if it is invalid or revoked, or cannot be checked at the moment.
func (f Firewall) user(ctx context.Context, r *edge.Request, key string) string {
	foreign := f.Foreign
	if foreign != nil && !f.Bears(key) {
		foreign = nil
	}
	b, err := bearerOf(ctx, r, func(ctx context.Context, raw string) (c token.Claims, err error) {
		err = withFreshSnapshot(ctx, f.Feed, func() (err error) {
			if c, err = f.Tokens.Verify(token.XAuth, raw); err == nil && !f.Live(c.Subject, c.SessionID, c.SV) {
				err = errNoCredential
			}
			return err
		})
		return c, err
	}, foreign)
	if err != nil {
		return ""
	}
	return b.UserID
}

// service is the name of the service client with a valid key, and "" otherwise.
func (f Firewall) service(ctx context.Context, r *edge.Request) string {
	raw := r.Header("service-auth")
	if raw == "" || f.Service == nil {
		return ""
	}
	var client servicekey.Client
	if withFreshSnapshot(ctx, f.Feed, func() (err error) {
		client, err = f.Service(raw, r.Caller.IP)
		return err
	}) != nil {
		return ""
	}
	return client.Name
}
