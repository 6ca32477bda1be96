package metrics

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
)

// Committer counts, for the metrics, how challenges and jobs end. It reads the writes of durable units, so only
// real ends are counted.
type Committer struct {
	commit.Committer
	Started, Discarded atomic.Int64
	Ended              map[string]*atomic.Int64 // by outcome; the map does not change
	Jobs               *prometheus.CounterVec   // that are over, by type and state
}

// The outcomes of a challenge. Failed: the action refused.
const (
	completed  = "completed"
	failed     = "failed"
	denied     = "denied"
	locked     = "locked"
	superseded = "superseded"
	withdrawn  = "withdrawn" // its credentials have changed or its session has ended
)

// NewCommitter returns a committer that counts the writes of c.
func NewCommitter(c commit.Committer) *Committer {
	m := &Committer{Committer: c, Ended: map[string]*atomic.Int64{},
		Jobs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_jobs_ended_total",
			Help: "Finished background jobs, by type and status."}, []string{"type", "status"})}
	for _, outcome := range []string{
		completed, failed, denied, locked, superseded, withdrawn,
	} {
		m.Ended[outcome] = new(atomic.Int64)
	}
	return m
}

func (c *Committer) Commit(ctx context.Context, writes ...commit.Write) error {
	if err := c.Committer.Commit(ctx, writes...); err != nil {
		return err
	}
	commit.After(ctx, func() { c.count(writes) })
	return nil
}

func (c *Committer) count(writes []commit.Write) {
	for _, w := range writes {
		switch w := w.(type) {
		case challenge.Insert:
			c.Started.Add(1)
			if outcome := endOf(w.Challenge, writes); outcome != "" { // completed by its start
				c.Ended[outcome].Add(1)
			}
		case challenge.Update:
			if outcome := endOf(w.Challenge, writes); outcome != "" {
				c.Ended[outcome].Add(1)
			}
		case challenge.Supersede:
			c.Ended[superseded].Add(1)
		case job.Save:
			if w.State.Over() {
				c.Jobs.WithLabelValues(w.Kind, string(w.State)).Inc()
			}
		case outbox.Add:
			if w.State == outbox.Discarded {
				c.Discarded.Add(1)
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
				return failed
			}
		}
		return completed
	case challenge.Denied:
		return denied
	case challenge.Closed:
		switch c.Reason {
		case challenge.TooManyWrong:
			return locked
		case challenge.Superseded:
			return superseded
		}
		return withdrawn
	}
	return ""
}
