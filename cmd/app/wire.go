// Package app is the service put together: what an open deployment is (Open),
// and a running node with every part of it (Serve). Commands and benches drive
// it; no rule lives here.
//
// Start reading at Serve in wire.go, the only file that knows every part of
// the program.
package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"castellan/actors"
	"castellan/actors/ratelimit"
	"castellan/cluster"
	"castellan/config"
	"castellan/domain/addressbook"
	"castellan/domain/addressbook/address"
	"castellan/domain/allowedip"
	"castellan/domain/challenge"
	"castellan/domain/challenge/stepup"
	"castellan/domain/change"
	"castellan/domain/cronkey"
	"castellan/domain/currency"
	"castellan/domain/device"
	"castellan/domain/firewall"
	"castellan/domain/geo"
	"castellan/domain/geofilter"
	"castellan/domain/id"
	"castellan/domain/keyring"
	"castellan/domain/message"
	"castellan/domain/mfa"
	"castellan/domain/outbox"
	"castellan/domain/password"
	"castellan/domain/password/replace"
	"castellan/domain/resource"
	"castellan/domain/session"
	"castellan/domain/token"
	"castellan/domain/totp"
	"castellan/domain/user"
	httpapi "castellan/http"
	httpaddressbook "castellan/http/addressbook"
	httpaudit "castellan/http/audit"
	httpchallenge "castellan/http/challenge"
	httpcluster "castellan/http/cluster"
	httpdevice "castellan/http/device"
	"castellan/http/edge"
	httpfirewall "castellan/http/firewall"
	httpgeofilter "castellan/http/geofilter"
	"castellan/http/guard"
	httpmfa "castellan/http/mfa"
	httppassword "castellan/http/password"
	httpresource "castellan/http/resource"
	httprole "castellan/http/role"
	httpsession "castellan/http/session"
	"castellan/http/socket"
	"castellan/http/system"
	httptotp "castellan/http/totp"
	httpuser "castellan/http/user"
	"castellan/outbound/dispatch"
	"castellan/outbound/geoip"
	"castellan/outbound/push"
	"castellan/outbound/tracing"
	"castellan/persistence"
)

// service is a running node: every part of it, in the order in which they are
// built and the reverse of which they are stopped.
type service struct {
	cfg   config.Config
	o     Options
	log   *slog.Logger
	vault *Vault

	feed        *change.Reader
	users       persistence.Users
	roles       *resource.Live
	revocations *session.Revocations
	activity    *session.Activity
	tokens      *token.Issuer
	live        *mfa.Live
	currencies  *currency.Live
	crons       *cronkey.Live
	geofilters  *geofilter.Live
	allowedIPs  *allowedip.Live
	locator     geo.Locator
	firewall    *firewall.Live
	wall        *firewall.Wall
	counts      counts
	rates       *ratelimit.Counter // counts of a node of a cluster; nil: this node is alone
	dispatch    *dispatch.Dispatcher
	node        *cluster.Node
	client      actors.Client
	engine      *stepup.Service
	hasher      *password.Hasher
	logins      *session.Service
	totps       *totp.Service
	devices     *device.Service
	passwords   *replace.Service
	countries   *geofilter.Service
	hub         *socket.Hub
	server      *edge.Server
	metrics     *metrics
	tally       *tally
	tracer      *tracing.Tracer // nil where nothing is traced
	backlog     backlog
	stops       *stops // nil on a node that is alone
	denials     *denials
	calls       *calls

	draining   atomic.Bool
	leaving    context.Context // ends with leave, when the node begins to drain
	leave      context.CancelFunc
	background sync.WaitGroup
	stop       context.CancelFunc
}

// Options are what the process around the service gives to it.
type Options struct {
	Version string
	Commit  string
	Log     *slog.Logger
	// Out is shown, in development mode, where to look and how to log in.
	Out io.Writer
	// Senders go before those of the configuration: what is sent on their
	// channels stays in this process.
	Senders map[message.Channel]message.Sender
}

// Serve runs the service until ctx ends and everything under way has finished.
func Serve(ctx context.Context, cfg config.Config, o Options) error {
	started := time.Now()
	for _, w := range cfg.Warnings() {
		o.Log.Warn("configuration", "warning", w)
	}
	v, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	s := &service{cfg: cfg, o: o, log: o.Log, vault: v}
	l, err := net.Listen("tcp", cfg.HTTP.Addr)
	if err != nil {
		return errors.Join(err, v.Close())
	}
	if err := s.build(ctx, l.Addr()); err != nil {
		return errors.Join(err, l.Close(), v.Close())
	}
	metricsServer, err := s.metrics.listen(cfg.Metrics.Addr)
	if err != nil {
		return errors.Join(err, l.Close(), v.Close())
	}
	if s.stops != nil {
		s.stops.beat() // building may have taken long
		s.background.Go(func() { s.stops.run(ctx) })
	}
	if err := s.node.Start(); err != nil {
		return errors.Join(err, l.Close(), v.Close())
	}
	if !cfg.Dev {
		if err := s.endDemo(ctx); err != nil {
			return errors.Join(fmt.Errorf("accounts of development mode: %w", err), l.Close(), v.Close())
		}
	}
	s.run()
	if cfg.Dev {
		banner(o.Out, v, o.Version, cfg.DataDir, "http://"+l.Addr().String()+cfg.HTTP.BasePath, cfg.Metrics.Addr)
	}
	o.Log.Info("serving", "addr", l.Addr().String(), "version", o.Version, "after", time.Since(started).Round(time.Millisecond))
	failed := make(chan error, 1)
	go func() { failed <- s.server.Serve(l) }()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(err, s.drain(metricsServer))
}

// build makes every part; nothing serves yet.
func (s *service) build(ctx context.Context, addr net.Addr) (err error) {
	cfg, db, ring, now := s.cfg, s.vault.DB, s.vault.Ring, time.Now
	if s.tracer, err = newTracer(cfg, s.o.Version, addr, s.log); err != nil {
		return err
	}
	s.tally = newTally(committer(db, cfg.Database, s.tracer))
	s.users = persistence.NewUsers(db)
	s.tokens = token.NewIssuer(ring, cfg.Tokens.Issuer, cfg.Tenant.ID, now, tokenMemory)
	sessions := persistence.NewSessions(db)
	s.revocations = session.NewRevocations(revocationLife(cfg), now)
	s.activity = session.NewActivity(db, now)
	s.roles = resource.NewLive(persistence.NewResources(db), s.users)
	s.live = mfa.NewLive(persistence.NewMFA(db))
	s.currencies = currency.NewLive(persistence.NewCurrencies(db))
	s.crons = cronkey.NewLive(persistence.NewCronKeys(db), ring)
	s.geofilters = geofilter.NewLive(persistence.NewGeofilters(db))
	s.allowedIPs = allowedip.NewLive(persistence.NewAllowedIPs(db))
	s.firewall = firewall.NewLive(persistence.NewFirewall(db), cfg.Firewall.AppID, now)
	if s.node, err = newNode(cfg.Cluster, s.o.Version, s.log); err != nil {
		return err
	}
	s.count()
	s.wall = &firewall.Wall{Rules: s.firewall.Snapshot, Counter: s.counts, Bypass: cfg.Firewall.BypassCIDRs, Now: now}
	if s.locator, err = Locator(cfg); err != nil {
		return err
	}
	s.follow()
	load := func(ctx context.Context) error {
		return errors.Join(s.revocations.Load(ctx, sessions), s.roles.Reload(ctx), s.live.Reload(ctx), s.currencies.Reload(ctx),
			s.crons.Reload(ctx), s.geofilters.Load(ctx), s.allowedIPs.Reload(ctx), s.firewall.Reload(ctx))
	}
	s.feed.OnGap(func(ctx context.Context) error { return errors.Join(s.vault.Keeper.Reload(ctx), load(ctx)) })
	if err := errors.Join(load(ctx), s.feed.Poll(ctx)); err != nil {
		return fmt.Errorf("load snapshots: %w", err)
	}

	outboxStore := persistence.NewOutbox(db)
	senders, err := senders(cfg, s.o.Senders, ring.VAPID())
	if err != nil {
		return err
	}
	s.dispatch = dispatch.New(dispatch.Options{Store: outboxStore, Commit: s.tally, Open: ring.Open, Senders: senders, Keep: cfg.Dev, Workers: cfg.Outbox.Workers,
		Lease: cfg.Outbox.Lease, RetryMin: cfg.Outbox.RetryMin, RetryMax: cfg.Outbox.RetryMax, MaxAttempts: cfg.Outbox.MaxAttempts, Now: now, Log: s.log, Gone: s.gone})

	people := accounts{s.users}
	actions := challenge.Actions{}
	challenges := persistence.NewChallenges(db)
	revoking := session.Revoking{Committer: s.tally, Revocations: s.revocations, Also: s.geofilters.Told}
	if cfg.Cluster.GossipAddr != "" {
		s.stops = newStops()
		s.stops.beat()
		db.Admit(s.stops.check)
		s.node.Admit(s.stops.check)
		roll := newRoll(db, s.node)
		s.node.OnApart(roll.ask)
		s.feed.On(change.Cluster, roll.apply)
	}
	warm := new(actors.WarmCache)
	_, embedded := cfg.Database.SQLitePath()
	if s.tracer != nil {
		s.node.Trace(s.tracer)
	}
	s.node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: challenges, Outbox: outboxStore, Commit: revoking, Actions: actions, Rules: rules(cfg), Accounts: people,
		Claims:      map[challenge.Name]actors.Claims{challenge.TOTP: totp.Claim, challenge.PUSH: stepup.Claim},
		Unclustered: cfg.Cluster.GossipAddr == "" && !embedded, Sessions: s.revocations, Seal: ring.Seal, Open: ring.Open, Grace: cfg.MFA.PAuthGrace, Now: now, Log: s.log})...)
	s.client = actors.Client{Node: s.node, WarmCache: warm, Now: now}
	book, err := message.NewBook(httpapi.Title, nil)
	if err != nil {
		return err
	}
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.engine = &stepup.Service{Config: stepupConfig(cfg), Leaving: s.leaving, Actions: actions, Catalog: s.live.Catalog, Book: book, Ring: ring, Tokens: challengeTokens{s.tokens, now},
		Accounts: people, Sessions: s.revocations, UserGate: s.client, Challenges: s.client, Store: challenges, Outbox: outboxStore, Dispatch: s.dispatch, Commit: s.tally, Now: now}

	s.totps = &totp.Service{Store: persistence.NewTOTP(db), Users: s.users, Budgets: challenges, Commit: s.tally, Ring: ring, Notices: s.engine, Rules: rules(cfg),
		Recovery: totp.Limit{Attempts: cfg.Limits.RecoveryCodes, Window: cfg.Limits.RecoveryCodeWindow}, Issuer: cfg.MFA.TOTPIssuer, Now: now}
	s.engine.Judges = map[challenge.Name]stepup.Judge{
		challenge.TOTP: func(ctx context.Context, userID string, a stepup.Answer) (challenge.Verdict, *challenge.Claim, error) {
			return s.totps.Judge(ctx, userID, a.Value)
		},
	}
	actions.Register(s.totps.SetupAction())
	actions.Register(s.totps.DeactivateAction())
	s.devices = &device.Service{Store: persistence.NewDevices(db), Users: s.users, Commit: s.tally, Ring: ring, Audience: publicURL(cfg, addr), Loopback: cfg.Dev,
		Now: now, Log: s.log}
	s.engine.Devices = s.devices
	actions.Register(s.devices.AddAction())
	actions.Register(s.devices.RemoveAction())

	if s.hasher, err = NewHasher(cfg); err != nil {
		return err
	}
	s.logins = &session.Service{Users: s.users, Sessions: sessions, Hasher: s.hasher,
		Guards: password.NewGuards(persistence.NewPasswordGuards(db), db, guardRules(cfg), now), Starts: s.engine, Commit: s.tally, Tokens: s.tokens,
		Revocations: s.revocations, Conceal: conceal(ring), Admits: admits(cfg), Dev: cfg.Dev, TokenTTL: cfg.Tokens.XAuthTTL, Now: now}
	actions.Register(s.logins.LoginAction())
	actions.Register(user.VerifyEmailAction())
	actions.Register(user.VideoKYCAction())
	s.passwords = &replace.Service{Users: s.users, Sessions: sessions, Tokens: persistence.NewResetTokens(db), Signer: s.tokens, Engine: s.engine, Hasher: s.hasher,
		Policy: password.Policy{MinChars: cfg.Password.MinLength, MaxChars: cfg.Password.MaxLength},
		Wrong:  password.NewGuards(persistence.NewPasswordGuards(db), db, replace.WrongRules(), now),
		Commit: revoking, Ring: ring, Admits: admits(cfg), Dev: cfg.Dev, TokenTTL: cfg.Tokens.OTAuthTTL, Now: now}
	if l := cfg.Limits; l.Enabled {
		s.passwords.Phones = password.NewGuards(persistence.NewPasswordGuards(db), db, password.Limit(l.ResetPerPhone, l.ResetPhoneWindow), now)
		s.passwords.Networks = password.NewGuards(persistence.NewPasswordGuards(db), db, password.Limit(l.ResetPerIP, l.ResetIPWindow), now)
	}
	actions.Register(s.passwords.ResetAction())
	actions.Register(s.passwords.ChangeAction())
	s.countries = &geofilter.Service{Store: persistence.NewGeofilters(db), Users: s.users, Commit: revoking, Now: now}
	actions.Register(s.countries.AddAction())
	actions.Register(s.countries.RemoveAction())

	s.hub = socket.NewHub(s.client, s.engine.Open, now, s.log)
	s.client.Listen(s.hub.Receive)
	s.client.OnMove(s.hub.Moved)
	s.metrics = newMetrics(s)
	s.denials = newDenials(db, now, s.log)
	return s.buildServer(actions, addr)
}

func (s *service) buildServer(actions challenge.Actions, addr net.Addr) (err error) {
	cfg, db, ring, now := s.cfg, s.vault.DB, s.vault.Ring, time.Now
	addressRules, err := address.NewRules(cfg.AddressBook.AddressRules)
	if err != nil {
		return err
	}
	vapid, err := push.PublicKey(ring.VAPID())
	if err != nil {
		return err
	}
	publicURL := publicURL(cfg, addr)
	registry := &resource.Admin{Store: persistence.NewResources(db), Accounts: s.users, Commit: s.tally, Live: s.roles, Table: httpapi.Table(), Dev: cfg.Dev, Now: now}
	api := httpapi.API{
		Challenge: httpchallenge.Group{Engine: s.engine, Now: now, Zone: cfg.Language.Zone(), CountryName: geo.Name},
		TOTP:      httptotp.Group{Service: s.totps},
		Password:  httppassword.Group{Service: s.passwords},
		MFA:       httpmfa.Group{Admin: &mfa.Admin{Store: persistence.NewMFA(db), Commit: s.tally, Live: s.live, Now: now, Guarded: slices.Sorted(maps.Values(cfg.MFA.Guarded))}},
		Firewall: httpfirewall.Group{Admin: &firewall.Admin{Store: persistence.NewFirewall(db), Commit: s.tally, Live: s.firewall, App: cfg.Firewall.AppID,
			Bypass: cfg.Firewall.BypassCIDRs, Known: Resources(cfg), Now: now}},
		Resource: httpresource.Group{Admin: registry},
		User:     httpuser.Group{Users: s.users},
		Session:  httpsession.Group{Service: s.logins, CountryName: geo.Name},
		Device:   httpdevice.Group{Service: s.devices},
		Role:     httprole.Group{Admin: registry},
		Explain:  httpmfa.Explain{Start: s.engine.Explain},
		Rules:    httpfirewall.Explain{Wall: s.wall, Known: Resources(cfg), CountryOf: s.locator.Country},
		Audit:    httpaudit.Group{Store: persistence.NewAudit(db)},
		Cluster:  httpcluster.Group{Status: func() httpcluster.Status { return s.clusterStatus() }},
		Keys:     system.Keys{JWKS: ring.JWKS, VAPID: vapid},

		Geofilter: httpgeofilter.Group{Service: s.countries, CDN: cmp.Or(cfg.Geo.CDNURL, publicURL)},
		AddressBook: httpaddressbook.Group{Service: &addressbook.Service{Store: persistence.NewAddressBooks(db), Commit: s.tally, Currencies: s.currencies,
			Rules: addressRules, Waiting: cfg.AddressBook.WaitingTime, Now: now}},
	}
	guards := guard.Guards{Tokens: s.tokens, Feed: s.feed, Judge: s.roles.Judge, Tenant: cfg.Tenant.ID, Cron: s.crons.Client, Devices: s.devices,
		Geo: &guard.Geo{Policy: geoPolicy(cfg), Filter: s.geofilters.Filter, Holder: s.client.Holder}, AllowsIP: s.allowedIPs.Allows,
		Live: func(userID, sessionID string, sv int64) bool {
			if !s.revocations.Live(userID, sessionID, sv) {
				return false
			}
			s.activity.Touch(sessionID)
			return true
		}}
	s.calls = newCalls(db, guards.Audited, now)
	var base func() context.Context
	var woke func() bool
	if s.stops != nil {
		base, woke = s.stops.context, s.stops.woke
	}
	s.server, err = edge.New(edge.Options{Base: base, Woke: woke,
		Logger: s.log, AccessLog: slog.LevelDebug, Now: now, Guards: guards.Table(), Firewall: guard.Firewall{Wall: s.wall, Tokens: s.tokens, Live: s.revocations.Live, Feed: s.feed}.Judge, Authorize: guards.Authorize, ActsAsAdmin: guards.ActsAsAdmin,
		Idempotency: &guard.Idempotent{Store: persistence.NewIdempotency(db), Commit: s.tally, Ring: ring, Now: now},
		Verify:      guard.Verify(s.totps),
		Starter:     guard.Starter{Starts: s.engine, Accounts: accounts{s.users}, Public: api.Password.Public()}, Guarded: cfg.MFA.Guarded, Observe: s.observe, Trace: traceRequests(s.tracer),
		TrustedProxies: cfg.HTTP.TrustedProxies, CountryHeader: cfg.HTTP.CountryHeader, CountryOf: s.locator.Country, CORSOrigins: cfg.HTTP.CORSOrigins, BasePath: cfg.HTTP.BasePath,
		PublicURL: publicURL, DefaultLanguage: cfg.Language.Default, MaxConnections: cfg.HTTP.MaxConnections, MaxConnectionsPerIP: cfg.HTTP.MaxConnectionsPerIP, MaxInFlight: maxInFlight,
		Timeout: requestTime + cfg.MFA.ExecWait + cfg.Password.QueueWait, Draining: s.draining.Load,
	}, api.Endpoints())
	if err != nil {
		return fmt.Errorf("endpoints: %w", err)
	}
	web := s.server.App.Server()
	web.ReadTimeout, web.IdleTimeout, web.WriteTimeout = cfg.HTTP.ReadTimeout, cfg.HTTP.IdleTimeout, cfg.HTTP.WriteTimeout
	if err := guarded(cfg.MFA.Guarded, actions, s.server.RunCaptured); err != nil {
		return err
	}
	system.Mount(s.server, system.Options{Ready: s.ready, Draining: s.draining.Load, OpenAPI: s.openAPI, AsyncAPI: s.asyncAPI, Dev: s.dev(publicURL)})
	socket.Mount(s.server, socket.Options{Hub: s.hub, Challenge: guards.Challenge, Origins: cfg.HTTP.CORSOrigins, Loopback: cfg.Dev, MaxSockets: cfg.HTTP.MaxConnections})
	return nil
}

// guarded registers the actions of endpoints that the configuration put behind a
// challenge. The code of an action that does something of its own would do that
// instead of what was asked for, so it stops the start.
func guarded(endpoints map[string]string, actions challenge.Actions, run func(context.Context, edge.Captured) (json.RawMessage, error)) error {
	for _, code := range slices.Compact(slices.Sorted(maps.Values(endpoints))) {
		if code == user.ActionVideoKYC { // it asks for nothing but the challenge, and may stand before an endpoint too
			delete(actions, code)
		}
		if _, known := actions[code]; known {
			return fmt.Errorf("mfa.guarded: %s is the action of endpoints of its own; choose another code", code)
		}
		actions.Register(guard.Captured(code, run))
	}
	return nil
}

// gone has a device not be woken where nobody is any more.
func (s *service) gone(ctx context.Context, m outbox.Message, r message.Rendered) {
	if r.Channel != message.Push {
		return
	}
	if err := s.devices.Gone(ctx, m.UserID, r.To); err != nil {
		s.log.Warn("a push target that is gone could not be removed", "err", err)
	}
}

// Resources are what this program serves, as rules of the firewall name it.
func Resources(cfg config.Config) firewall.Resources {
	var keys []string
	for _, e := range httpapi.Table() {
		keys = append(keys, e.Method+" "+e.Path)
	}
	return firewall.NewResources(cfg.HTTP.BasePath, keys)
}

// publicURL is where clients reach the service: unless it is configured, where it
// listens.
func publicURL(cfg config.Config, addr net.Addr) string {
	if cfg.Source("http.public_url") == config.FromDefault {
		return "http://" + addr.String() + cfg.HTTP.BasePath
	}
	return cfg.HTTP.PublicURL
}

// Bounds of a node that nobody needs to configure.
const (
	drainNotice  = 500 * time.Millisecond
	closingTime  = 5 * time.Second      // for the node's own last writes
	loginHistory = 400 * 24 * time.Hour // how long logins are remembered
	tokenMemory  = 1 << 17
	maxInFlight  = 16384
	requestTime  = 10 * time.Second
)

// documented is what stands before the paths of the published documents: the
// public URL where it is known, else what they share with the document.
func documented(cfg config.Config) string {
	if cfg.Source("http.public_url") == config.FromDefault {
		return cfg.HTTP.BasePath
	}
	return cfg.HTTP.PublicURL
}

func (s *service) openAPI() []byte {
	return written(httpapi.OpenAPI(s.o.Version, documented(s.cfg)))
}

func (s *service) asyncAPI() []byte { return written(socket.Document(documented(s.cfg))) }

// written is a document, or an empty one where it could not be written.
func written(document []byte, err error) []byte {
	if err != nil {
		slog.Error("a document of the interface could not be written", "err", err)
		return []byte("{}")
	}
	return document
}

func (s *service) observe(_ context.Context, a edge.Answered) {
	s.metrics.observe(a)
	s.denials.observe(a)
	s.calls.observe(a)
}

// follow keeps the snapshots of this node true to what other nodes, and the
// command line, write.
func (s *service) follow() {
	s.feed = change.NewReader(persistence.NewChanges(s.vault.DB), time.Now)
	s.feed.On(change.Sessions, s.revocations.Apply)
	s.feed.On(change.Keys, func(ctx context.Context, _ string) error { return s.vault.Keeper.Reload(ctx) })
	s.feed.On(change.MFA, func(ctx context.Context, _ string) error { return s.live.Reload(ctx) })
	s.feed.On(change.Currencies, func(ctx context.Context, _ string) error { return s.currencies.Reload(ctx) })
	s.feed.On(change.CronKeys, func(ctx context.Context, _ string) error { return s.crons.Reload(ctx) })
	s.feed.On(change.Roles, func(ctx context.Context, _ string) error { return s.roles.Reload(ctx) })
	s.feed.On(change.Users, s.roles.Follow)
	s.feed.On(change.Geofilter, s.geofilters.Follow)
	s.feed.On(change.Firewall, func(ctx context.Context, _ string) error { return s.firewall.Reload(ctx) })
	s.feed.On(change.AllowedIPs, func(ctx context.Context, _ string) error { return s.allowedIPs.Reload(ctx) })
}

func (s *service) dev(publicURL string) *system.Dev {
	if !s.cfg.Dev {
		return nil
	}
	return &system.Dev{Letters: letters(persistence.NewOutbox(s.vault.DB), s.vault.Ring), PublicURL: publicURL}
}

// ready makes real round trips: to the database and through the node.
func (s *service) ready(ctx context.Context) error {
	if err := s.vault.DB.Ping(ctx); err != nil {
		return err
	}
	if err := s.feed.CatchUp(ctx); err != nil {
		return fmt.Errorf("the change feed is behind: %w", err)
	}
	return s.client.Probe(ctx)
}

// run starts what goes on in the background.
func (s *service) run() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.dispatch.Start()
	s.background.Go(func() { keepMemory(ctx) })
	s.background.Go(func() {
		s.feed.Run(ctx, func(err error) { s.log.Warn("the change feed cannot be read", "err", err) })
	})
	s.background.Go(func() {
		s.activity.Run(ctx, func(err error) { s.log.Warn("session activity could not be written", "err", err) })
	})
	s.background.Go(func() {
		s.calls.run(ctx, func(err error) { s.log.Warn("audited calls could not be written", "err", err) })
	})
	s.every(ctx, 5*time.Second, "executing challenges could not be resumed", s.resume)
	s.every(ctx, 5*time.Second, "the outbox could not be counted", func(ctx context.Context) error { return s.backlog.look(ctx, s.vault.DB) })
	s.every(ctx, time.Minute, "old rows could not be removed", s.purge)
	s.every(ctx, 10*time.Second, "refusals could not be audited", func(ctx context.Context) error { return s.denials.flush(ctx, false) })
	if file, ok := s.locator.(*geoip.File); ok {
		s.every(ctx, 5*time.Second, "the file of countries could not be read again", func(context.Context) error {
			changed, err := file.Refresh()
			if changed {
				s.log.Info("the file of countries was read again", "file", s.cfg.Geo.MMDBFile)
			}
			return err
		})
	}
	s.every(ctx, 10*time.Second, "", func(context.Context) error { s.counts.Sweep(); return nil })
	s.every(ctx, time.Minute, "audit checkpoint could not be written", s.checkpoint)
}

func (s *service) every(ctx context.Context, d time.Duration, complaint string, do func(context.Context) error) {
	s.background.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			bound, cancel := context.WithTimeout(ctx, 30*time.Second)
			if err := do(bound); err != nil && ctx.Err() == nil {
				s.log.Warn(complaint, "err", err)
			}
			cancel()
		}
	})
}

// resume wakes the owners of challenges whose action has not reported.
func (s *service) resume(ctx context.Context) error {
	ids, err := persistence.NewChallenges(s.vault.DB).Stuck(ctx, time.Now().Add(-5*time.Second), 100)
	for _, id := range ids {
		s.client.Resume(id)
	}
	return err
}

// purge removes what nobody can ask for any more.
func (s *service) purge(ctx context.Context) error {
	db, now := s.vault.DB, time.Now()
	longest, err := s.vault.TokenLife(ctx, s.cfg)
	if err != nil {
		return err
	}
	// Gone is what no living token can name any more, an hour later.
	old := now.Add(-longest - time.Hour)
	return errors.Join(
		persistence.NewChallenges(db).PurgeOutcomes(ctx, now, now.Add(-s.cfg.MFA.ChallengeTTL-s.cfg.MFA.PAuthGrace)),
		persistence.NewChallenges(db).Purge(ctx, old),
		persistence.NewSessions(db).Purge(ctx, old, now.Add(-loginHistory)),
		persistence.NewChanges(db).Purge(ctx, now.Add(-change.Kept)),
		persistence.NewIdempotency(db).Purge(ctx, now.Add(-48*time.Hour)),
		persistence.NewOutbox(db).Purge(ctx, now.Add(-48*time.Hour)),
		persistence.NewPasswordGuards(db).Purge(ctx, now),
		persistence.NewResetTokens(db).Purge(ctx, now),
		persistence.NewDevices(db).Purge(ctx, now),
	)
}

func (s *service) checkpoint(ctx context.Context) error {
	return s.vault.DB.Checkpoint(ctx, time.Now(), s.vault.Ring.Audit())
}

// drain ends the service in order: nothing new, what is under way finishes,
// sockets are told, then the parts stop.
func (s *service) drain(metricsServer *http.Server) error {
	s.log.Info("draining")
	s.draining.Store(true)
	s.leave()
	patience, give := context.WithTimeout(context.Background(), s.cfg.HTTP.ShutdownGrace)
	defer give()
	s.node.Leave(patience) // what is under way here is answered by the others from now on
	s.hub.Close(patience)
	s.quiet(patience)
	err := s.server.App.ShutdownWithContext(patience)
	if err != nil {
		err = fmt.Errorf("requests were cut off after http.shutdown_grace: %w", err)
	}
	// What is to be written down has time of its own, however long they took.
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	s.stop()
	s.background.Wait()
	s.dispatch.Stop()
	s.node.Stop(ctx)
	if s.rates != nil { // nobody asks any more
		s.rates.Close()
	}
	if cerr := errors.Join(s.denials.flush(ctx, true), s.calls.flush(ctx), s.checkpoint(ctx)); cerr != nil {
		s.log.Warn("the audit could not be closed", "err", cerr)
	}
	if s.tracer != nil {
		last, cancel := context.WithTimeout(ctx, 2*time.Second) // a collector that is away holds nobody up
		s.tracer.Close(last)
		cancel()
	}
	if metricsServer != nil {
		err = errors.Join(err, metricsServer.Close())
	}
	err = errors.Join(err, s.vault.Close())
	s.log.Info("stopped")
	return err
}

// quiet waits until no request is under way, and long enough for whoever routes
// to this node to see that it is not ready. The listener stays open meanwhile:
// a refusal with Retry-After is kinder than a refused connection.
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

// challengeTokens signs the token of a challenge (D-AUTH-04).
type challengeTokens struct {
	issuer *token.Issuer
	now    func() time.Time
}

// PAuth implements stepup.Tokens.
func (t challengeTokens) PAuth(challengeID string, expiresAt time.Time) (string, error) {
	now := t.now()
	return t.issuer.Sign(token.Claims{Class: token.PAuth, ID: id.New(now), ChallengeID: challengeID, IssuedAt: now, ExpiresAt: expiresAt})
}

// conceal hashes an identifier that nobody has, under the oldest key, so that
// wrong passwords for it are counted across rotations.
func conceal(ring *keyring.Ring) func(string) string {
	return func(identifier string) string {
		sums := ring.Hashes("identifier", identifier)
		return hex.EncodeToString(sums[len(sums)-1].Sum)
	}
}
