package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"castellan/actors"
	"castellan/cmd/app/metrics"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	httpjob "castellan/http/kit/job"
	"castellan/persistence/kit"
)

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
	s.jobs = &job.Service{Store: store, Changes: s.changes("", nil), Seal: s.Ring.Seal, Wake: owners.Wake,
		Leaving: s.leaving}
	count := &census{store: store, kinds: s.kinds}
	s.join(part{
		groups: groups(httpjob.Group{Service: s.jobs}),
		loops: []loop{{"background jobs cannot be looked for", func(ctx context.Context, report func(error)) {
			s.pollJobs(ctx, owners, report)
		}}},
		tasks:   []task{{censusEvery, "background jobs could not be counted", count.look}},
		purge:   func(ctx context.Context, old expiry) error { return store.Purge(ctx, old.now.Add(-jobLife)) },
		metrics: func(m *metrics.Registry) { m.MustRegister(count, s.commit.Jobs) },
	})
	return nil
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

// census is the number of jobs at the last count. It is a prometheus.Collector.
type census struct {
	store job.Store
	kinds map[string]job.Kind
	last  atomic.Pointer[[]job.Census]
}

var (
	jobsLeft = prometheus.NewDesc("castellan_jobs", "Background jobs that are not over, of all nodes.",
		[]string{"type", "status"}, nil)
	jobsStuck = prometheus.NewDesc("castellan_jobs_stuck",
		"Background jobs that have been due for more than a minute and took no step, of all nodes.",
		[]string{"type"}, nil)
)

func (c *census) look(ctx context.Context) error {
	now, err := c.store.Census(ctx, time.Now())
	if err == nil {
		c.last.Store(&now)
	}
	return err
}

func (*census) Describe(to chan<- *prometheus.Desc) { to <- jobsLeft; to <- jobsStuck }

func (c *census) Collect(to chan<- prometheus.Metric) {
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
		to <- prometheus.MustNewConstMetric(jobsLeft, prometheus.GaugeValue, float64(k.Jobs), k.Kind, string(k.State))
	}
	for kind, n := range stuck {
		to <- prometheus.MustNewConstMetric(jobsStuck, prometheus.GaugeValue, float64(n), kind)
	}
}
