package app

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"castellan/domain/access/challenge"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
)

// metricsCommitter counts, for the metrics, how challenges and jobs end. It reads the writes of durable units, so only
// real ends are counted.
type metricsCommitter struct {
	commit.Committer
	started, discarded atomic.Int64
	ended              map[string]*atomic.Int64 // by outcome; the map does not change
	jobs               *prometheus.CounterVec   // that are over, by type and state
}

// The outcomes of a challenge. Failed: the action refused.
const (
	endedCompleted  = "completed"
	endedFailed     = "failed"
	endedDenied     = "denied"
	endedLocked     = "locked"
	endedSuperseded = "superseded"
	endedWithdrawn  = "withdrawn" // its credentials have changed or its session has ended
)

func newMetricsCommitter(c commit.Committer) *metricsCommitter {
	m := &metricsCommitter{Committer: c, ended: map[string]*atomic.Int64{},
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_jobs_ended_total",
			Help: "Background jobs that are over, by type and status."}, []string{"type", "status"})}
	for _, outcome := range []string{
		endedCompleted, endedFailed, endedDenied, endedLocked, endedSuperseded, endedWithdrawn,
	} {
		m.ended[outcome] = new(atomic.Int64)
	}
	return m
}

func (c *metricsCommitter) Commit(ctx context.Context, writes ...commit.Write) error {
	if err := c.Committer.Commit(ctx, writes...); err != nil {
		return err
	}
	commit.After(ctx, func() { c.count(writes) })
	return nil
}

func (c *metricsCommitter) count(writes []commit.Write) {
	for _, w := range writes {
		switch w := w.(type) {
		case challenge.Insert:
			c.started.Add(1)
		case challenge.Update:
			if outcome := endOf(w.Challenge, writes); outcome != "" {
				c.ended[outcome].Add(1)
			}
		case challenge.Supersede:
			c.ended[endedSuperseded].Add(1)
		case job.Save:
			if w.State.Over() {
				c.jobs.WithLabelValues(w.Kind, string(w.State)).Inc()
			}
		case outbox.Add:
			if w.State == outbox.Discarded {
				c.discarded.Add(1)
			}
		}
	}
}

// endOf returns how a challenge ended, "" if it has not. The audit row that is written with it shows whether its action
// refused.
func endOf(c challenge.Challenge, with []commit.Write) string {
	switch c.State {
	case challenge.Done:
		for _, w := range with {
			if r, ok := w.(audit.Record); ok && r.Target == c.ID && r.Outcome != audit.Success {
				return endedFailed
			}
		}
		return endedCompleted
	case challenge.Denied:
		return endedDenied
	case challenge.Closed:
		switch c.Reason {
		case challenge.TooManyWrong:
			return endedLocked
		case challenge.Superseded:
			return endedSuperseded
		}
		return endedWithdrawn
	}
	return ""
}
