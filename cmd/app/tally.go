package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"castellan/cluster"
	"castellan/domain/audit"
	"castellan/domain/challenge"
	"castellan/domain/commit"
	"castellan/domain/outbox"
	"castellan/persistence"
)

// tally is a Committer that counts, for the metrics, what became of challenges:
// it reads them from the writes that made it durable, so that nothing is
// counted that did not happen.
type tally struct {
	commit.Committer
	started, discarded atomic.Int64
	ended              map[string]*atomic.Int64 // by outcome; the map does not change
}

// The outcomes of a challenge. Failed is an action that refused.
const (
	endedCompleted  = "completed"
	endedFailed     = "failed"
	endedDenied     = "denied"
	endedLocked     = "locked"
	endedSuperseded = "superseded"
	endedWithdrawn  = "withdrawn" // the credentials or the session that it was started with are gone
)

func newTally(c commit.Committer) *tally {
	t := &tally{Committer: c, ended: map[string]*atomic.Int64{}}
	for _, outcome := range []string{endedCompleted, endedFailed, endedDenied, endedLocked, endedSuperseded, endedWithdrawn} {
		t.ended[outcome] = new(atomic.Int64)
	}
	return t
}

type tallyKey struct{}

// Commit implements commit.Committer.
func (t *tally) Commit(ctx context.Context, writes ...commit.Write) error {
	if err := t.Committer.Commit(ctx, writes...); err != nil {
		return err
	}
	if later, ok := ctx.Value(tallyKey{}).(*[][]commit.Write); ok {
		*later = append(*later, writes) // durable when the transaction is
		return nil
	}
	t.count(writes)
	return nil
}

// InTx implements commit.Committer.
func (t *tally) InTx(ctx context.Context, fn func(context.Context) error) error {
	if _, nested := ctx.Value(tallyKey{}).(*[][]commit.Write); nested {
		return t.Committer.InTx(ctx, fn)
	}
	var later [][]commit.Write
	if err := t.Committer.InTx(context.WithValue(ctx, tallyKey{}, &later), fn); err != nil {
		return err
	}
	for _, writes := range later {
		t.count(writes)
	}
	return nil
}

func (t *tally) count(writes []commit.Write) {
	for _, w := range writes {
		switch w := w.(type) {
		case challenge.Insert:
			t.started.Add(1)
		case challenge.Update:
			if outcome := endOf(w.Challenge, writes); outcome != "" {
				t.ended[outcome].Add(1)
			}
		case challenge.Supersede:
			t.ended[endedSuperseded].Add(1)
		case outbox.Add:
			if w.State == outbox.Discarded {
				t.discarded.Add(1)
			}
		}
	}
}

// endOf names how a challenge ended, "" while it has not. Whether its action
// refused is told by the row of the audit that is written with it.
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

// backlog is what the outbox held when it was last looked at.
type backlog struct{ queued, oldest atomic.Int64 }

func (b *backlog) look(ctx context.Context, db *persistence.DB) error {
	queued, oldest, err := persistence.NewOutbox(db).Backlog(ctx)
	if err != nil {
		return err
	}
	b.queued.Store(int64(queued))
	if queued == 0 {
		b.oldest.Store(0)
	} else {
		b.oldest.Store(oldest.UnixMilli())
	}
	return nil
}

// age is that of the oldest message in seconds, 0 when there is none.
func (b *backlog) age(now time.Time) float64 {
	oldest := b.oldest.Load()
	if oldest == 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(oldest)).Seconds())
}

// actorLoads tells the load of every kind of actor, all read at one time.
type actorLoads struct {
	read func() map[string]cluster.Load
}

var (
	actorsActive    = prometheus.NewDesc("castellan_actors_active", "Activations on this node.", []string{"kind"}, nil)
	actorsActivated = prometheus.NewDesc("castellan_actors_activated_total", "Activations that were made on this node.", []string{"kind"}, nil)
	actorsWaiting   = prometheus.NewDesc("castellan_actors_mailbox_messages", "Messages in the mailboxes of actors, those being handled included.", []string{"kind"}, nil)
	actorsDeepest   = prometheus.NewDesc("castellan_actors_mailbox_deepest_messages", "Messages in the fullest mailbox.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (actorLoads) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{actorsActive, actorsActivated, actorsWaiting, actorsDeepest} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (a actorLoads) Collect(to chan<- prometheus.Metric) {
	for kind, l := range a.read() {
		to <- prometheus.MustNewConstMetric(actorsActive, prometheus.GaugeValue, float64(l.Active), kind)
		to <- prometheus.MustNewConstMetric(actorsActivated, prometheus.CounterValue, float64(l.Activated), kind)
		to <- prometheus.MustNewConstMetric(actorsWaiting, prometheus.GaugeValue, float64(l.Waiting), kind)
		to <- prometheus.MustNewConstMetric(actorsDeepest, prometheus.GaugeValue, float64(l.Deepest), kind)
	}
}
