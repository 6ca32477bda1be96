package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"syscall"
	"time"

	"castellan/cmd/app/doctor"
	"castellan/cmd/app/metrics"
	"castellan/cmd/app/trail"
	"castellan/config"
	"castellan/domain/factor/challenge"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/idempotency"
	"castellan/domain/proof/dpop"
	httpapi "castellan/http"
	"castellan/http/auth"
	"castellan/http/edge"
	httpgateway "castellan/http/gate/gateway"
	"castellan/http/kit/cdn"
	"castellan/http/socket"
	"castellan/http/system"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// Limits of the server that need no configuration.
const (
	drainNotice = 500 * time.Millisecond
	maxInFlight = 16384
	requestTime = 10 * time.Second
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
		purge:   after(idempotency.Kept, repeats.Purge),
	})
	s.join(part{observe: s.metrics.Observe, metrics: func(m *metrics.Registry) {
		m.Gauge("castellan_http_requests_in_flight", "Requests being served.",
			func() float64 { return float64(s.server.InFlight()) })
	}})
	if err := httpapi.Complete(s.groups); err != nil {
		return err
	}
	o := edge.Options{
		Logger: s.log, AccessLog: slog.LevelDebug, Dev: cfg.Dev, LocalNames: cfg.DevContainer, Now: time.Now,
		Observe: s.observe, Trace: traceRequests(s.tracer),
		Firewall: auth.Firewall{Evaluator: s.evaluator, Tokens: s.tokens, Live: s.revocations.Live, Feed: s.feed,
			Service: s.services.Client, Foreign: s.foreignBearer, Bears: httpgateway.Checks}.Judge,
		Guards: guards.Table(), Authorize: guards.Authorize, ActsAsAdmin: guards.ActsAsAdmin,
		MayName:     guards.MayName,
		Idempotency: &auth.Idempotent{Store: repeats, Commit: s.commit, Ring: s.Ring, Now: time.Now, Secret: s.holdsSecret},
		Verify:      auth.Verify(s.totps),
		Starter: auth.Starter{Starts: s.starter, Accounts: accounts{s.users}, Recovery: s.totps.Redeem,
			Proofs: s.proofs, Public: s.public()},
		Guarded: cfg.MFA.Guarded, FourEyes: endpointSet(cfg.MFA.FourEyes), SecondPerson: second,
		Governs:        s.governs,
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
		Tags: httpapi.Tags(), Dev: s.dev(), BasePath: cfg.HTTP.BasePath, Version: s.o.Version, PublicURL: s.publicURL}
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
		Foreign: s.foreignBearer, BasePath: s.cfg.HTTP.BasePath,
		Blocked: func(key, userID string) bool {
			return s.evaluator.Needs(key).User && s.evaluator.Blacklisted(key, firewall.Client{UserID: userID})
		},
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

func (s *service) openAPI(tag string) []byte {
	return written(httpapi.OpenAPI(s.o.Version, documented(s.cfg), tag))
}

func (s *service) asyncAPI() []byte { return written(socket.Document(documented(s.cfg))) }

// written returns a document, or an empty one if it could not be encoded.
func written(document []byte, err error) []byte {
	if err != nil {
		slog.Error("a document of the API could not be written", "err", err)
		return []byte("{}")
	}
	return document
}

// Causes of a node that is not ready, beside those of the database (persistence.CauseOf). docs/operations/watch.md
// lists what each shows.
const (
	causeDraining = "draining"
	causeLease    = "lease"       // no other node confirms the membership
	causeFeed     = "change_feed" // tokens are refused
	causeActors   = "actors"
	causeLoad     = "overloaded" // the queue of the writer is full
)

// readiness is the last result of ready.
type readiness struct {
	mu    sync.Mutex
	cause string // "" if the node was ready
	since time.Time
}

// ready returns nil exactly if a request that writes could be served now. It makes real round trips: a commit on the
// connection of the writer, a read of the change feed, and a call through the node. A change is logged.
func (s *service) ready(ctx context.Context) error {
	cause, err := s.judgeReadiness(ctx)
	s.readiness.note(s.log, cause, err)
	return err
}

func (s *service) judgeReadiness(ctx context.Context) (cause string, err error) {
	if s.draining.Load() {
		return causeDraining, fault.New(fault.Draining, "this node is shutting down")
	}
	if !s.node.Belongs() {
		return causeLease, errors.New("no other node confirms the membership of this node")
	}
	if err := s.DB.Writable(ctx); err != nil {
		if fault.CodeOf(err) == fault.Overloaded {
			return causeLoad, err
		}
		return cmp.Or(persistence.CauseOf(err), causeLease), err // a paused process has lost its lease
	}
	if err := s.feed.CatchUp(ctx); err != nil {
		return causeFeed, fmt.Errorf("the change feed is outdated: %w", err)
	}
	if err := s.client.Probe(ctx); err != nil {
		return causeActors, err
	}
	return "", nil
}

// note logs a change of the cause.
func (r *readiness) note(log *slog.Logger, cause string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case cause == r.cause:
		return
	case cause == "":
		log.Info("ready again", "after", time.Since(r.since).Round(time.Millisecond))
	case cause != causeDraining: // draining has its own line
		log.Warn("not ready", "cause", cause, "err", err)
	}
	if r.cause == "" {
		r.since = time.Now()
	}
	r.cause = cause
}

// readyTime bounds the check of a scrape, like that of a probe.
const readyTime = 2 * time.Second

// scrapeReady checks the readiness.
func (s *service) scrapeReady(to metrics.Samples) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	cause, err := s.judgeReadiness(ctx)
	s.readiness.note(s.log, cause, err)
	ready := 0.0
	if cause == "" {
		ready = 1
	} else {
		to.Gauge("castellan_not_ready", "1 with the cause, while the node is not ready.", 1, "cause", cause)
	}
	to.Gauge("castellan_ready", "1 if a request that writes can be served.", ready)
}

// readyMetrics are the metrics of the readiness and of the disks of this machine.
func (s *service) readyMetrics(m *metrics.Registry) {
	m.Scrape(s.scrapeReady)
	dirs := map[string]string{"data_dir": s.cfg.DataDir}
	if file, embedded := s.cfg.Database.SQLitePath(); embedded {
		dirs["database"] = file
	}
	m.Scrape(func(to metrics.Samples) {
		for of, path := range dirs {
			to.Gauge("castellan_disk_free_bytes", "Free bytes of the disk of the data folder and of the SQLite database.",
				freeBytes(path), "of", of)
		}
	})
}

// freeBytes returns the space that is free for this process on the disk of a file or folder; -1 if it is unknown.
func freeBytes(path string) float64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return -1
	}
	return float64(disk.Bavail) * float64(disk.Bsize)
}

// processesEvery is how often this node looks for other processes on its database.
const processesEvery = 5 * time.Second

// watchProcesses returns a task that logs, once, that other processes serve the database without a cluster.
func (s *service) watchProcesses() func(context.Context) error {
	known := false
	return func(ctx context.Context) error {
		alone, clustered, err := s.DB.Servers(ctx)
		if err != nil {
			return err
		}
		now := doctor.Uncoordinated(alone, clustered)
		if now && !known {
			doctor.LogUncoordinated(s.log, alone, clustered)
		}
		known = now
		return nil
	}
}
