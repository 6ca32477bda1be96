package actors

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"castellan/cluster"
	"castellan/domain/job"
)

// KindJob is the kind of the owners of background jobs.
const KindJob = "job"

// Jobs are the owners of the background jobs of a node: the ring says which node
// owns which job, and its owner takes it one step after the other. The row has all
// that is known of a job, so its actor keeps nothing.
type Jobs struct {
	Node   *cluster.Node
	Runner *job.Runner
	Store  job.Store
	Log    *slog.Logger
}

// Times of the owners of jobs.
const (
	// JobPoll is how often a node looks for jobs that are due, its own first of all
	// those whose owner has gone.
	JobPoll = 500 * time.Millisecond
	// maxDue bounds what one look finds; the rest is found by the next ones.
	maxDue = 1000
	// jobRetry is when an owner looks again after an error.
	jobRetry = time.Second
)

// Kind is the kind of actor, for cluster.Node.Register.
func (j *Jobs) Kind() cluster.Kind {
	return cluster.Kind{Name: KindJob, Rows: true, New: func() cluster.Behaviour { return &jobActor{jobs: j} }}
}

// Wake has the owner of a job look at it, wherever it lives. It may be lost: the
// next Poll finds what is due.
func (j *Jobs) Wake(id string) { j.Node.Tell(KindJob, id, &emptypb.Empty{}) }

// Poll wakes the owners of what is due and lives here.
func (j *Jobs) Poll(ctx context.Context) error {
	ids, err := j.Store.Due(ctx, j.Runner.Now(), maxDue)
	for _, id := range ids {
		if j.Node.Owns(KindJob, id) && !j.Runner.Busy(id) {
			j.Wake(id)
		}
	}
	return err
}

// jobActor owns one job. It takes a step with each message and sends itself the
// next one, until the job waits for longer than Poll needs to find it again.
type jobActor struct {
	jobs  *Jobs
	stamp uint64 // of the next step; an older message does nothing
}

// nextStep is what the actor sends itself.
type nextStep struct{ stamp uint64 }

// Receive implements cluster.Behaviour.
func (a *jobActor) Receive(c *cluster.Context, msg any) {
	switch m := msg.(type) {
	case *emptypb.Empty:
	case nextStep:
		if m.stamp != a.stamp {
			return
		}
	default:
		return
	}
	due, over, err := a.jobs.Runner.Step(c.Background(), c.ID())
	wait := due.Sub(a.jobs.Runner.Now())
	if err != nil {
		wait = jobRetry
		a.jobs.Log.Warn("a job could not be taken further", "job", c.ID(), "err", err)
	}
	a.stamp++
	if (over || wait > JobPoll) && c.Passivate() {
		return
	}
	if next := (nextStep{a.stamp}); wait > 0 {
		c.Self().After(wait, next)
	} else {
		c.Self().Send(next)
	}
}
