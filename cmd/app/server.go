package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/cmd/app/trail"
	"castellan/config"
	"castellan/domain/access/challenge"
	"castellan/domain/access/dpop"
	httpapi "castellan/http"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/kit/cdn"
	"castellan/http/socket"
	"castellan/http/system"
	"castellan/persistence/kit"
)

// Limits of the server that need no configuration.
const (
	drainNotice = 500 * time.Millisecond
	maxInFlight = 16384
	requestTime = 10 * time.Second
	// repeatTime is how long the answer of an idempotency key is kept.
	repeatTime = 48 * time.Hour
)

// http builds the server over the endpoints of all parts. It is the last area.
func (s *service) http() (err error) {
	cfg := s.cfg
	guards := s.guards()
	second := s.fourEyes()
	s.calls = trail.NewCalls(s.DB, guards.Audited, time.Now)
	repeats := kit.NewIdempotency(s.DB)
	s.join(part{
		observe: s.calls.Observe,
		loops:   []loop{{"audited calls could not be written", s.calls.Run}},
		purge:   func(ctx context.Context, old expiry) error { return repeats.Purge(ctx, old.now.Add(-repeatTime)) },
	})
	s.join(part{observe: s.metrics.Observe, metrics: func(m *metrics.Registry) {
		m.Gauge("castellan_http_requests_in_flight", "Requests being served.",
			func() float64 { return float64(s.server.InFlight()) })
	}})
	if err := httpapi.Complete(s.groups); err != nil {
		return err
	}
	o := edge.Options{
		Logger: s.log, AccessLog: slog.LevelDebug, Now: time.Now, Observe: s.observe, Trace: traceRequests(s.tracer),
		Firewall: auth.Firewall{Evaluator: s.evaluator, Tokens: s.tokens, Live: s.revocations.Live, Feed: s.feed,
			Service: s.services.Client}.Judge,
		Guards: guards.Table(), Authorize: guards.Authorize, ActsAsAdmin: guards.ActsAsAdmin,
		MayName:     guards.MayName,
		Idempotency: &auth.Idempotent{Store: repeats, Commit: s.commit, Ring: s.Ring, Now: time.Now},
		Verify:      auth.Verify(s.totps),
		Starter: auth.Starter{Starts: s.starter, Accounts: accounts{s.users},
			Proofs: s.proofs, Public: s.public()},
		Guarded: cfg.MFA.Guarded, FourEyes: endpointSet(cfg.MFA.FourEyes), SecondPerson: second,
		TrustedProxies: cfg.HTTP.TrustedProxies, CountryHeader: cfg.HTTP.CountryHeader, CountryOf: s.locator.Country,
		CORSOrigins: cfg.HTTP.CORSOrigins, BasePath: cfg.HTTP.BasePath, PublicURL: s.publicURL,
		DefaultLanguage: cfg.Language.Default, MaxConnections: cfg.HTTP.MaxConnections,
		MaxConnectionsPerIP: cfg.HTTP.MaxConnectionsPerIP, MaxInFlight: maxInFlight,
		BodyBudget: int64(cfg.HTTP.BodyBudget) << 20,
		Timeout:    requestTime + cfg.MFA.ExecWait + cfg.Password.QueueWait, Draining: s.draining.Load,
	}
	if s.pauses != nil {
		o.Base, o.Resumed = s.pauses.Context, s.pauses.Resumed
	}
	if s.server, err = edge.New(o, httpapi.Endpoints(s.groups...)); err != nil {
		return fmt.Errorf("endpoints: %w", err)
	}
	web := s.server.App.Server()
	web.ReadTimeout, web.IdleTimeout, web.WriteTimeout = cfg.HTTP.ReadTimeout, cfg.HTTP.IdleTimeout, cfg.HTTP.WriteTimeout
	if err := guarded(cfg.MFA.Guarded, s.actions, s.server); err != nil {
		return err
	}
	pages := system.Options{Ready: s.ready, Draining: s.draining.Load, OpenAPI: s.openAPI, AsyncAPI: s.asyncAPI,
		Dev: s.dev(), BasePath: cfg.HTTP.BasePath, Version: s.o.Version, PublicURL: s.publicURL}
	if len(cfg.WebAuthn.Origins) > 0 {
		pages.RelatedOrigins = s.devices.Passkeys.Party.Origins
	}
	system.Mount(s.server, pages)
	cdn.Mount(s.server, s.files)
	s.mountGateway(guards)
	s.health = system.Health(pages)
	socket.Mount(s.server, socket.Options{Hub: s.hub, Challenge: guards.Challenge, Origins: cfg.HTTP.CORSOrigins,
		Loopback: cfg.Dev, MaxSockets: cfg.HTTP.MaxConnections})
	return nil
}

// public starts the challenges that need no credential.
func (s *service) public() map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started, error) {
	all := s.passwords.Public()
	maps.Copy(all, s.signups.Public())
	return all
}

// guards check the credentials of requests.
func (s *service) guards() auth.Guards {
	var proofs *dpop.Verifier
	if s.cfg.Sessions.Requests() {
		proofs = s.proofs
	}
	return auth.Guards{Tokens: s.tokens, Ended: s.tokens.VerifyEnded, Proofs: proofs, Feed: s.feed, Judge: s.roles.Judge,
		MayWrite: s.roles.MayWrite, Tenant: s.cfg.Tenant.ID,
		Cron: s.crons.Client, Service: s.services.Client, JudgeRole: s.roles.JudgeRole,
		Devices: s.devices, AllowsIP: s.allowedIPs.Allows,
		Geo: &auth.Geo{Policy: geoPolicy(s.cfg), Filter: s.geofilters.Filter, Holder: s.client.Holder},
		Live: func(userID, sessionID string, sv int64) bool {
			if !s.revocations.Live(userID, sessionID, sv) {
				return false
			}
			s.activity.Touch(sessionID)
			return true
		}}
}

// ready makes real round trips: to the database and through the node.
func (s *service) ready(ctx context.Context) error {
	if err := s.DB.Ping(ctx); err != nil {
		return err
	}
	if err := s.feed.CatchUp(ctx); err != nil {
		return fmt.Errorf("the change feed is outdated: %w", err)
	}
	return s.client.Probe(ctx)
}

// quiet waits until no request is under way, and long enough for load balancers to see that this node is not ready. The
// listener stays open in the meantime: a refusal with Retry-After is better than a refused connection.
func (s *service) quiet(ctx context.Context) {
	seen := time.After(drainNotice)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for noticed := false; !noticed || s.server.InFlight() > 0; {
		select {
		case <-seen:
			noticed = true
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// documented returns the prefix of the paths of the published documents: the configured public URL, else the base path.
func documented(cfg config.Config) string {
	if cfg.Source("http.public_url") == config.FromDefault {
		return cfg.HTTP.BasePath
	}
	return cfg.HTTP.PublicURL
}

func (s *service) openAPI() []byte { return written(httpapi.OpenAPI(s.o.Version, documented(s.cfg))) }

func (s *service) asyncAPI() []byte { return written(socket.Document(documented(s.cfg))) }

// written returns a document, or an empty one if it could not be encoded.
func written(document []byte, err error) []byte {
	if err != nil {
		slog.Error("a document of the API could not be written", "err", err)
		return []byte("{}")
	}
	return document
}
