// Package app assembles the service: an open deployment (Open), and a running node with every part of it (Serve).
// Commands and benches use it; it contains no business rules.
//
// The one idea: a slice joins the program in one place. Its part (part.go) declares its endpoints, actions, snapshots,
// jobs and metrics. It is in the file of its area: kit.go, delivery.go, guard.go, challenge.go for factors,
// account.go, session.go, gate.go, money.go, office.go, people.go; backoffice.go and operations.go have the functions
// of administrators. Other work has a package below this one.
//
// Start reading at Serve in wire.go, which keeps the order of start and stop.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"castellan/actors"
	"castellan/actors/ratelimit"
	"castellan/cluster"
	"castellan/cmd/app/doctor"
	"castellan/cmd/app/metrics"
	"castellan/cmd/app/pause"
	"castellan/cmd/app/trail"
	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/account/password/argon2id"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/remembered"
	"castellan/domain/gate/gateway"
	"castellan/domain/guard/firewall"
	domainlimit "castellan/domain/guard/ratelimit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/change"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/token"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/domain/people/document"
	"castellan/domain/people/identity"
	"castellan/domain/permit/cronkey"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/domain/proof/issuer"
	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	"castellan/domain/session/allowedip"
	"castellan/domain/session/geofilter"
	"castellan/domain/session/session"
	httpapi "castellan/http"
	httppassword "castellan/http/account/password"
	"castellan/http/edge"
	httpregistration "castellan/http/people/registration"
	"castellan/http/rest"
	"castellan/http/socket"
	"castellan/outbound/dispatch"
	"castellan/outbound/tracing"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
)

// service is a running node: its shared dependencies and the parts that joined.
type service struct {
	*Deployment
	cfg       config.Config
	o         Options
	log       *slog.Logger
	publicURL string
	full      atomic.Int64 // movements refused by a full account of the operator
	altered   atomic.Int64 // claims of withdrawals whose rows were altered

	// The contents of the joined parts (join).
	groups    []rest.Group
	actions   challenge.Actions
	loads     []func(context.Context) error
	tasks     []task
	anchors   *anchors
	kinds     map[string]job.Kind
	owners    []blob.Owner
	schedules []job.Schedule
	loops     []loop
	purges    []func(context.Context, expiry) error
	observers []func(edge.Answered)
	metrics   *metrics.Registry
	health    http.Handler // for the metrics listener

	// Shared by several areas.
	tracer         *tracing.Tracer // nil if tracing is off
	commit         *metrics.Committer
	feed           *change.Reader
	users          account.Users
	node           *cluster.Node
	pauses         *pause.Detector // nil on a node without a cluster
	locator        geo.Locator
	evaluator      *firewall.Evaluator
	limiter        limiter
	limits         *domainlimit.Bounded // limiter with the bound of a rule's keys, for counting
	clusterLimiter *ratelimit.Limiter   // the limiter of a cluster node; nil: no cluster
	tokens         *token.Issuer
	revocations    *session.Revocations
	activity       *session.Activity
	proofs         *dpop.Verifier
	dispatch       *dispatch.Dispatcher
	client         actors.Client
	starter        *stepup.Starter
	answerer       *stepup.Answerer
	hub            *socket.Hub
	currencies     *currency.Cache
	ledger         *ledger.Ledger
	totps          *totp.Service
	devices        *device.Service
	remembered     *remembered.Service
	geofilters     *geofilter.Cache
	allowedIPs     *allowedip.Cache
	hasher         *password.Hasher
	logins         *session.Service
	passwords      httppassword.Group
	signups        httpregistration.Group
	roles          *resource.Cache
	crons          *cronkey.Cache
	services       *servicekey.Cache
	rules          *policy.Cache // of the money policy
	judges         *transaction.Judge
	foreign        *issuer.Service // users who log in elsewhere
	gateways       *gateway.Guard
	mismatches     atomic.Int64    // executions refused because the command or its intent was changed
	external       kit.Integration // external ids and events of other services
	parameters     *parameter.Cache
	senders        map[message.Channel]message.Sender
	denials        *trail.Denials
	jobs           *job.Service
	runner         *job.Runner
	files          blob.Store
	pictures       *picture.Decoder
	papers         *document.Service
	identities     *identity.Service
	cdnURL         string // prefix of the paths of public files
	calls          *trail.Calls
	server         *edge.Server
	stopRLS        func(context.Context) // nil if it is off

	draining   atomic.Bool
	readiness  readiness
	leaving    context.Context // ends with leave, when the node begins to drain
	leave      context.CancelFunc
	background sync.WaitGroup
	stop       context.CancelFunc
}

// Options are given by the process that runs the service.
type Options struct {
	Version string
	Commit  string
	Log     *slog.Logger
	// Out receives, in development mode, the URL and the logins.
	Out io.Writer
	// Senders override the configured ones: messages on their channels stay in this process.
	Senders map[message.Channel]message.Sender
	// Defaults adds the default rules of the money policy at the first start.
	Defaults bool
	// Trace, if set, receives every statement and may make it fail (persistence.Options). It is for tests: the text
	// contains secrets.
	Trace func(ctx context.Context, statement string) (fails bool)
}

// Serve runs the service until ctx ends and all requests have finished.
func Serve(ctx context.Context, cfg config.Config, o Options) error {
	started := time.Now()
	if err := canListen(cfg); err != nil {
		return err
	}
	d, err := OpenWith(ctx, cfg, persistence.Options{Trace: o.Trace, Serves: true,
		Clustered: cfg.Cluster.GossipAddr != ""})
	if err != nil {
		return err
	}
	if o.Defaults {
		if err := d.seedPolicy(ctx, cfg.Dev, o.Log); err != nil {
			return errors.Join(fmt.Errorf("rules of the money policy: %w", err), d.Close())
		}
	}
	doctor.Log(ctx, cfg, d.DB, o.Log)
	if err := adviseSetup(ctx, cfg, d, o.Log); err != nil {
		return errors.Join(err, d.Close())
	}
	if open, _, err := money.NewTransactions(d.DB).Restored(ctx, ""); err != nil {
		return errors.Join(err, d.Close())
	} else if open {
		o.Log.Warn("no withdrawal can be claimed: the service was restored from a backup",
			"remedy", "castellan restore reconcile")
	}
	cfg.MFA.Guarded = guardedEndpoints(cfg.MFA, httpapi.Endpoints())
	s := &service{Deployment: d, cfg: cfg, o: o, log: o.Log}
	l, err := net.Listen("tcp", cfg.HTTP.Addr)
	if err != nil {
		return errors.Join(fmt.Errorf("http.addr: %w", err), d.Close())
	}
	if err := s.build(ctx, l.Addr()); err != nil {
		return errors.Join(err, l.Close(), d.Close())
	}
	metricsServer, err := s.metrics.Listen(cfg.Metrics.Addr, s.health)
	if err != nil {
		return errors.Join(fmt.Errorf("metrics.addr: %w", err), l.Close(), d.Close())
	}
	if s.pauses != nil {
		s.background.Go(func() { s.pauses.Run(ctx) })
	}
	if err := s.node.Start(); err != nil {
		return errors.Join(err, l.Close(), d.Close())
	}
	if !cfg.Dev {
		if err := s.endDemo(ctx); err != nil {
			return errors.Join(fmt.Errorf("accounts of development mode: %w", err), l.Close(), d.Close())
		}
	}
	d.DB.EndPatience() // requests begin
	s.start()
	if err := s.rateLimitService(); err != nil {
		return errors.Join(fmt.Errorf("limits.rls_addr: %w", err), l.Close(), s.drain(metricsServer))
	}
	if cfg.Dev {
		url := "http://" + browsable(l.Addr().String()) + cfg.HTTP.BasePath
		banner(o.Out, d, o.Version, cfg.DataDir, url, browsable(cfg.Metrics.Addr))
	}
	o.Log.Info("serving", "addr", l.Addr().String(), "version", o.Version, "hash", argon2id.Vectors(),
		"after", time.Since(started).Round(time.Millisecond))
	failed := make(chan error, 1)
	go func() { failed <- s.server.Serve(l) }()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(err, s.drain(metricsServer))
}

// canListen reports an address that is in use, by its setting, before the start creates or migrates anything. It does
// not keep the listeners: until the service is ready, connections must be refused.
func canListen(cfg config.Config) error {
	for key, addr := range map[string]string{"http.addr": cfg.HTTP.Addr, "metrics.addr": cfg.Metrics.Addr,
		"limits.rls_addr": cfg.Limits.RLSAddr} {
		if addr == "" {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// build creates every part, in the order of their dependencies, and fills the snapshots. Nothing is served yet.
func (s *service) build(ctx context.Context, addr net.Addr) (err error) {
	if s.publicURL = s.cfg.HTTP.PublicURL; s.cfg.Source("http.public_url") == config.FromDefault {
		at := addr.String()
		if s.cfg.DevContainer { // every client uses a name of its own machine
			at = browsable(at)
		}
		s.publicURL = "http://" + at + s.cfg.HTTP.BasePath
	}
	if s.tracer, err = newTracer(s.cfg, s.o.Version, addr, s.log); err != nil {
		return err
	}
	s.metrics = metrics.New(s.o.Version, s.o.Commit)
	s.leaving, s.leave = context.WithCancel(context.Background())
	for _, area := range []func() error{
		s.database, s.cluster, s.work, s.openFileStorage, s.firewall, s.sessions, s.delivery,
		s.challenges, s.assets, s.accounts, s.login, s.integration, s.backOffice, s.documents, s.kyc,
		s.operations, s.money, s.policy, s.standings, s.content, s.setup, s.http} {
		if err := area(); err != nil {
			return err
		}
	}
	// Writes during loading are in the feed, which is read from the creation of its reader on.
	s.feed.OnGap(s.load)
	err = s.load(ctx)
	if err == nil {
		err = s.feed.First(ctx)
	}
	if err != nil {
		return fmt.Errorf("load the rules and settings of requests: %w", err)
	}
	return nil
}

// closingTime is the timeout of the node's own last writes.
const closingTime = 5 * time.Second

// drain stops the service in order. It accepts nothing new, lets requests finish, notifies sockets, and then stops the
// parts.
func (s *service) drain(metricsServer *http.Server) error {
	s.log.Info("draining")
	s.draining.Store(true)
	s.leave()
	patience, give := context.WithTimeout(context.Background(), s.cfg.HTTP.ShutdownGrace)
	defer give()
	s.node.Leave(patience) // from now on the other nodes answer for this node's identities
	s.runner.Wait(patience)
	s.hub.Close(patience)
	s.quiet(patience)
	if s.stopRLS != nil {
		last, end := context.WithTimeout(patience, closingTime) // streams that do not end leave time to the requests
		s.stopRLS(last)
		end()
	}
	err := s.server.App.ShutdownWithContext(patience)
	if err != nil {
		err = fmt.Errorf("requests were aborted after http.shutdown_grace: %w", err)
	}
	// The last writes have their own timeout, however long the requests took.
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	s.stop()
	s.background.Wait()
	s.dispatch.Stop()
	s.node.Stop(ctx)
	if s.clusterLimiter != nil { // no request arrives any more
		s.clusterLimiter.Close()
	}
	if cerr := errors.Join(s.denials.Flush(ctx, true), s.calls.Flush(ctx), s.anchors.next(ctx, true)); cerr != nil {
		s.log.Warn("the audit could not be closed", "err", cerr)
	}
	if err := s.judges.Hits.Flush(ctx, money.NewRules(s.DB), time.Now()); err != nil {
		s.log.Warn("the hits of the money policy could not be stored", "err", err)
	}
	if s.tracer != nil {
		last, cancel := context.WithTimeout(ctx, 2*time.Second) // an unreachable collector delays nothing
		s.tracer.Close(last)
		cancel()
	}
	if metricsServer != nil {
		err = errors.Join(err, metricsServer.Close())
	}
	err = errors.Join(err, s.Close())
	s.log.Info("stopped")
	return err
}
