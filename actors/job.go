package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/emptypb"

	"castellan/cluster"
	"castellan/domain/kit/job"
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
	// A step is followed by a rest, so that a job leaves the processors to requests: it
	// works a fifth of the time. The bound is for steps that wait for somebody else.
	restFactor = 4
	maxRest    = 250 * time.Millisecond
	// jobRetry is when an owner looks again after an error.
	jobRetry = time.Second
)

// Kind is the kind of actor, for cluster.Node.Register.
func (j *Jobs) Kind() cluster.Kind {
	return cluster.Kind{Name: KindJob, Rows: true, New: func() actor.Actor { return &jobActor{jobs: j} }}
}

// Wake has the owner of a job look at it, wherever it lives. It may be lost: the
// next Poll finds what is due.
func (j *Jobs) Wake(id string) { send(j.Node, KindJob, id, &emptypb.Empty{}) }

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

// jobActor owns one job. It takes a step and sends itself the next one, until the
// job waits for longer than Poll needs to find it again.
type jobActor struct {
	jobs    *Jobs
	pending bool // the next step is on its way; until then nothing else wakes it
}

// nextStep is what the actor sends itself.
type nextStep struct{}

func (a *jobActor) Receive(ctx actor.Context) {
	c := cluster.ContextOf(ctx)
	switch ctx.Message().(type) {
	case *emptypb.Empty:
		if a.pending {
			return
		}
	case nextStep:
		a.pending = false
	default:
		return
	}
	began := time.Now()
	due, over, err := a.jobs.Runner.Step(c.Background(), c.ID())
	wait := max(due.Sub(a.jobs.Runner.Now()), min(restFactor*time.Since(began), maxRest))
	if err != nil {
		wait = jobRetry
		a.jobs.Log.Warn("a job could not be taken further", "job", c.ID(), "err", err)
	}
	if (over || wait > JobPoll) && c.Passivate() {
		return
	}
	a.pending = true
	c.Self().After(wait, nextStep{})
}
