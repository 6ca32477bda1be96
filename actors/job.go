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

// Jobs owns the background jobs of a node. The ring assigns each job to one node, whose actor executes one step after
// the other. The row holds the whole state of a job, so its actor keeps none.
type Jobs struct {
	Node   *cluster.Node
	Runner *job.Runner
	Store  job.Store
	Log    *slog.Logger
}

// Times of the owners of jobs.
const (
	// JobPoll is how often a node looks for due jobs, mainly those whose owner has left.
	JobPoll = 500 * time.Millisecond
	// maxDue bounds the result of one poll; later polls find the rest.
	maxDue = 1000
	// A step is followed by a pause, so that a job leaves the processors to requests: it works a fifth of the time. The
	// bound is for steps that wait for an external system.
	restFactor = 4
	maxRest    = 250 * time.Millisecond
	// jobRetry is the delay after an error.
	jobRetry = time.Second
)

// Kind returns the kind of actor, for cluster.Node.Register.
func (j *Jobs) Kind() cluster.Kind {
	return cluster.Kind{Name: KindJob, Rows: true, New: func() actor.Actor { return &jobActor{jobs: j} }}
}

// Wake notifies the owner of a job, on whichever node it is. The message may be lost: the next Poll finds the due jobs.
func (j *Jobs) Wake(id string) { send(j.Node, KindJob, id, &emptypb.Empty{}) }

// Poll wakes the owners of the due jobs that this node owns.
func (j *Jobs) Poll(ctx context.Context) error {
	ids, err := j.Store.Due(ctx, j.Runner.Now(), maxDue)
	for _, id := range ids {
		if j.Node.Owns(KindJob, id) && !j.Runner.Busy(id) {
			j.Wake(id)
		}
	}
	return err
}

// jobActor owns one job. It executes a step and sends itself the next one, until the job's next step is further away
// than the poll interval.
type jobActor struct {
	jobs    *Jobs
	pending bool // the next step is scheduled; until then other wakes are ignored
}

// nextStep is the message that the actor sends itself.
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
		a.jobs.Log.Warn("a step of a job could not be executed", "job", c.ID(), "err", err)
	}
	if (over || wait > JobPoll) && c.Passivate() {
		return
	}
	a.pending = true
	c.Self().After(wait, nextStep{})
}
