package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"castellan/cmd/app/memory"
	"castellan/cmd/app/metrics"
	"castellan/domain/access/challenge"
	"castellan/domain/kit/change"
	"castellan/http/system"
	"castellan/outbound/push"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/kit"
)

// database builds the basis of every other area: the committer, the change feed and the keys.
func (s *service) database() (err error) {
	s.commit = metrics.NewCommitter(committer(s.DB, s.cfg.Database, s.tracer))
	s.users = access.NewUsers(s.DB)
	s.actions = challenge.Actions{}
	changes := kit.NewChanges(s.DB)
	s.feed = change.NewReader(changes, time.Now)
	s.join(part{
		loops: []loop{{"the change feed cannot be read", s.feed.Run}},
		purge: func(ctx context.Context, old expiry) error { return changes.Purge(ctx, old.now.Add(-change.Kept)) },
		metrics: func(m *metrics.Registry) {
			m.Flag("castellan_feed_fresh", "1 while the change feed is read in time.", s.feed.Fresh)
		},
	})
	if s.anchors, err = newAnchors(s.DB, s.Ring.Audit, s.cfg.Audit, s.log); err != nil {
		return err
	}
	s.join(part{
		tasks: []task{
			{time.Minute, "audit checkpoint could not be made or published",
				func(ctx context.Context) error { return s.anchors.next(ctx, false) }},
			{time.Minute, "old rows could not be removed", s.purge},
		},
		loops:   []loop{{run: func(ctx context.Context, _ func(error)) { memory.Manage(ctx) }}},
		metrics: s.databaseMetrics,
	})

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
	m.Gauge("castellan_audit_checkpoint", "Number of the last audit checkpoint that this node made.",
		func() float64 { return float64(s.anchors.counter.Load()) })
	m.Flag("castellan_audit_broken", "1 while this node refuses to certify an audit trail of which something is gone.",
		s.anchors.broken.Load)
	for name, pool := range s.DB.Pools() {
		m.MustRegister(collectors.NewDBStatsCollector(pool, name))
	}
	m.Counter("castellan_commit_batches_total", "Transactions of gathered units.", s.DB.Batches)
	m.Counter("castellan_commit_units_total", "Units of work made durable.", s.DB.Units)
	m.Gauge("castellan_commit_waiting", "Units that wait for the writer.",
		func() float64 { return float64(s.DB.Waiting()) })
	statements := prometheus.NewCounter(prometheus.CounterOpts{Name: "castellan_commit_statements_total",
		Help: "Statements of these transactions; one for many rows counts once."})
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "castellan_commit_batch_units",
		Help: "Units gathered in a transaction.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "castellan_commit_duration_seconds",
		Help:    "Time of a transaction of gathered units, flush of the disk included.",
		Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}})
	functions := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_commit_functions_total",
		Help: "Transactions that left the executor of statements, by the type of write that made them."},
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
