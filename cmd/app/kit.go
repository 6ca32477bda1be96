package app

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"castellan/actors"
	"castellan/cmd/app/adapters"
	"castellan/cmd/app/doctor"
	"castellan/cmd/app/memory"
	"castellan/cmd/app/metrics"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/cdn"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/setup"
	"castellan/domain/people/document"
	httpcdn "castellan/http/kit/cdn"
	httpjob "castellan/http/kit/job"
	httpsetup "castellan/http/kit/setup"
	httpdocument "castellan/http/people/document"
	"castellan/http/system"
	"castellan/outbound/push"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
)

// database builds the basis of every other area: the committer, the change feed and the keys.
func (s *service) database() (err error) {
	s.commit = metrics.NewCommitter(committer(s.DB, s.cfg.Database, s.tracer))
	s.users = account.NewUsers(s.DB)
	s.actions = challenge.Actions{}
	changes := kit.NewChanges(s.DB)
	s.feed = change.NewReader(changes, time.Now)
	s.join(part{
		loops: []loop{{"the change feed cannot be read", s.feed.Run}},
		purge: after(change.Kept, changes.Purge),
		metrics: func(m *metrics.Registry) {
			m.Flag("castellan_feed_fresh", "1 if the change feed is read in time.", s.feed.Fresh)
		},
	})
	if s.anchors, err = newAnchors(s.DB, s.Ring.Audit, s.cfg.Audit, s.log); err != nil {
		return err
	}
	s.join(part{
		tasks: []task{
			{time.Minute, "audit checkpoint could not be created or published",
				func(ctx context.Context) error { return s.anchors.next(ctx, false) }},
			{time.Minute, "old rows could not be removed", s.purge},
		},
		loops:   []loop{{run: func(ctx context.Context, _ func(error)) { memory.Manage(ctx) }}},
		metrics: s.databaseMetrics,
	})
	s.join(part{metrics: s.readyMetrics, tasks: []task{
		{processesEvery, "the processes on the database cannot be counted", s.watchProcesses()}}})

	vapid := func() (string, error) { return push.PublicKey(s.Ring.VAPIDs()[0]) }
	if _, err := vapid(); err != nil {
		return err
	}
	s.join(part{
		groups: groups(system.Keys{JWKS: s.Ring.JWKS, VAPID: vapid}),
		snapshots: []snapshot{{
			topic:  change.Keys,
			load:   s.Keeper.Reload,
			follow: func(ctx context.Context, _ ...string) error { return s.Keeper.Reload(ctx) },
		}},
	})
	return nil
}

func (s *service) databaseMetrics(m *metrics.Registry) {
	m.Gauge("castellan_audit_checkpoint", "Number of the last audit checkpoint created by this node.",
		func() float64 { return float64(s.anchors.counter.Load()) })
	m.Flag("castellan_audit_broken", "1 if this node refuses to certify an audit trail with missing rows.",
		s.anchors.broken.Load)
	for name, pool := range s.DB.Pools() {
		m.MustRegister(collectors.NewDBStatsCollector(pool, name))
	}
	m.Counter("castellan_commit_batches_total", "Transactions of gathered units.", s.DB.Batches)
	m.Counter("castellan_commit_units_total", "Committed units of work.", s.DB.Units)
	m.Gauge("castellan_commit_waiting", "Units waiting for the writer.",
		func() float64 { return float64(s.DB.Waiting()) })
	statements := prometheus.NewCounter(prometheus.CounterOpts{Name: "castellan_commit_statements_total",
		Help: "Statements of these transactions; a statement for many rows counts once."})
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "castellan_commit_batch_units",
		Help: "Units per transaction.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "castellan_commit_duration_seconds",
		Help:    "Duration of a transaction of the writer, including the flush to disk.",
		Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}})
	functions := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_commit_functions_total",
		Help: "Transactions that could not use the statement executor, by type of write."},
		[]string{"write"})
	m.MustRegister(statements, size, took, functions)
	s.DB.OnCommit(func(c persistence.Committed) {
		for _, write := range c.Functions {
			functions.WithLabelValues(write).Inc()
		}
		statements.Add(float64(c.Statements))
		size.Observe(float64(c.Units))
		took.Observe(c.Took.Seconds())
	})
}

const (
	// jobLife is how long finished jobs are kept after their creation.
	jobLife = 30 * 24 * time.Hour
	// censusEvery is the maximum age of the metrics of jobs.
	censusEvery = 10 * time.Second
)

// work builds the starters and the runners of background jobs: owners in the cluster, which use the kinds from the
// parts of the slices.
func (s *service) work() error {
	store := kit.NewJobs(s.DB)
	s.kinds = map[string]job.Kind{}
	_, embedded := s.cfg.Database.SQLitePath()
	s.runner = &job.Runner{Store: store, Commit: s.commit, Kinds: s.kinds, Open: s.Ring.Open, Now: time.Now, Log: s.log,
		Name: id.New(time.Now()), Unclustered: s.cfg.Cluster.GossipAddr == "" && !embedded, Leaving: s.leaving}
	owners := &actors.Jobs{Node: s.node, Runner: s.runner, Store: store, Log: s.log}
	s.node.Register(owners.Kind())
	s.jobs = &job.Service{Store: store, Changes: s.changes("", nil), Seal: s.Ring.Seal, Kinds: s.kinds,
		Open: s.Ring.Open, Wake: owners.Wake, Leaving: s.leaving}
	count := &census{store: store, kinds: s.kinds}
	s.join(part{
		groups: groups(httpjob.Group{Service: s.jobs}),
		loops: []loop{{"background jobs cannot be listed", func(ctx context.Context, report func(error)) {
			s.pollJobs(ctx, owners, report)
		}}, {"indexes of the database cannot be built", s.buildIndexes}},
		tasks:   []task{{censusEvery, "background jobs could not be counted", count.look}},
		purge:   after(jobLife, store.Purge),
		metrics: func(m *metrics.Registry) { m.Scrape(count.scrape); m.MustRegister(s.commit.Jobs) },
	})
	return nil
}

// buildIndexes builds the indexes that the migrations have deferred, and tries again after a failure.
func (s *service) buildIndexes(ctx context.Context, report func(error)) {
	for {
		built, err := persistence.BuildIndexes(ctx, s.DB)
		for _, name := range built {
			s.log.Info("indexes were built", "migration", name)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		report(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
	}
}

// pollJobs starts the scheduled jobs and wakes the owners of due ones. A failure is reported once until a poll has
// succeeded.
func (s *service) pollJobs(ctx context.Context, owners *actors.Jobs, report func(error)) {
	scheduler := job.Scheduler{Service: s.jobs, Schedules: s.schedules}
	tick := time.NewTicker(actors.JobPoll)
	defer tick.Stop()
	moved := make(chan struct{}, 1) // a job may have moved here
	s.node.OnMove(func(func(kind, id string) bool) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	for failing := false; ; {
		err := errors.Join(scheduler.Tick(ctx), owners.Poll(ctx))
		if err != nil && !failing && ctx.Err() == nil {
			report(err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-tick.C:
		}
	}
}

// census is the number of jobs at the last count.
type census struct {
	store job.Store
	kinds map[string]job.Kind
	last  atomic.Pointer[[]job.Census]
}

func (c *census) look(ctx context.Context) error {
	now, err := c.store.Census(ctx, time.Now())
	if err == nil {
		c.last.Store(&now)
	}
	return err
}

func (c *census) scrape(to metrics.Samples) {
	var now []job.Census
	if last := c.last.Load(); last != nil {
		now = *last
	}
	stuck := map[string]int{}
	for kind := range c.kinds { // an alert needs to see a zero too
		stuck[kind] = 0
	}
	for _, k := range now {
		stuck[k.Kind] += k.Stuck
		to.Gauge("castellan_jobs", "Unfinished background jobs, of all nodes.", float64(k.Jobs), "type", k.Kind, "status",
			string(k.State))
	}
	for kind, n := range stuck {
		to.Gauge("castellan_jobs_stuck", "Background jobs that have been due for more than a minute without a step, of all "+
			"nodes.", float64(n), "type", kind)
	}
}

// sweepFiles is how often files without a row are looked for.
const sweepFiles = time.Hour

// openFileStorage builds the file storage of the slices. A slice whose rows name files declares that in its part
// (part.files).
func (s *service) openFileStorage() error {
	store, err := adapters.Files(s.cfg.Files)
	if err != nil {
		return err
	}
	s.files = loggedFiles{store, s.log}
	s.pictures = picture.NewDecoder()
	s.cdnURL = cmp.Or(s.cfg.Files.CDNURL, s.publicURL+"/cdn")
	s.join(part{
		kinds: []job.Kind{{Name: "sweep-files",
			Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
				n, err := blob.Sweep(ctx, s.files, s.owners, time.Now())
				j.Total, j.Done = int64(n), int64(n)
				return j.Finish(""), nil, err
			}}},
		schedules: []job.Schedule{{Kind: "sweep-files", Every: sweepFiles}},
	})
	s.archives()
	return nil
}

// documents builds the uploads of users and administrators.
func (s *service) documents() error {
	store := people.NewDocuments(s.DB)
	s.papers = &document.Service{Store: store, Users: s.users, Files: s.files, Pictures: s.pictures, Ring: s.Ring,
		Changes: s.changes("", nil), Values: s.parameters.Set, Quota: int64(s.cfg.Files.UserQuota) << 20}
	s.join(part{
		groups: groups(
			httpdocument.Group{Service: s.papers, IdentityNo: func(ctx context.Context, userID string) (string, error) {
				return s.identities.NumberOf(ctx, userID)
			}},
			httpcdn.Group{Service: &cdn.Service{Files: s.files, Pictures: s.pictures, Changes: s.changes("", nil),
				Values: s.parameters.Set, URL: s.cdnURL}}),
		files: []blob.Owner{{Area: document.Area, ReferencedKeys: store.ReferencedPaths}},
	})
	return nil
}

// setup builds the administrators' view of the findings of the doctor.
func (s *service) setup() error {
	d := doctor.New(s.cfg, s.DB)
	d.Unreadable = func() string { return s.server.Unreadable() }
	checks := setup.NewChecks(func(ctx context.Context) setup.Report { return d.Report(ctx, true, nil) })
	s.join(part{groups: groups(httpsetup.Group{
		Report: func(ctx context.Context) setup.Report { return d.Report(ctx, false, nil) }, Check: checks.Run})})
	return nil
}

// loggedFiles logs why files cannot be stored or read; the client does not receive the reason.
type loggedFiles struct {
	blob.Store
	log *slog.Logger
}

func (l loggedFiles) logUnavailable(err error) error {
	if fault.CodeOf(err) == fault.Unavailable {
		l.log.Warn("a file operation failed", "err", err)
	}
	return err
}

func (l loggedFiles) Put(ctx context.Context, key string, content []byte) error {
	return l.logUnavailable(l.Store.Put(ctx, key, content))
}

func (l loggedFiles) Get(ctx context.Context, key string) (blob.File, error) {
	f, err := l.Store.Get(ctx, key)
	return f, l.logUnavailable(err)
}

func (l loggedFiles) Stat(ctx context.Context, key string) (blob.Info, error) {
	i, err := l.Store.Stat(ctx, key)
	return i, l.logUnavailable(err)
}

func (l loggedFiles) Delete(ctx context.Context, key string) error {
	return l.logUnavailable(l.Store.Delete(ctx, key))
}

func (l loggedFiles) List(ctx context.Context, area string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for i, err := range l.Store.List(ctx, area) {
			if !yield(i, l.logUnavailable(err)) {
				return
			}
		}
	}
}
