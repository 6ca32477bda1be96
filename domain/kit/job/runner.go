package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// Runner advances jobs, one step at a time. It does not decide where a job runs: the owner of the job (package actors)
// calls Step. It is safe for concurrent use; two runners of one job waste work and send nothing twice.
type Runner struct {
	Store  Store
	Commit commit.Committer
	// Kinds are all kinds by name; the map does not change.
	Kinds map[string]Kind
	// Open is Open of the keyring.
	Open func(sealed, ad []byte) ([]byte, error)
	Now  func() time.Time
	Log  *slog.Logger
	// Name distinguishes this runner from those of other processes.
	Name string
	// Unclustered is true if other processes may run these jobs and this process cannot see whether they are alive.
	// Then a job is left alone for Lease after a step of another process.
	Unclustered bool
	// Leaving ends when this node must give up its jobs.
	Leaving context.Context

	mu   sync.Mutex
	busy map[string]int // running steps, by job
	idle sync.WaitGroup
}

// Times of a step.
const (
	Lease      = 15 * time.Second
	stepTime   = time.Minute      // of Kind.Step
	sendTime   = 10 * time.Second // of Items.Send
	settleTime = 10 * time.Second // to save the outcome
	lookEvery  = 500 * time.Millisecond
)

// errLeft interrupts a step because its job moves to another node or is cancelled.
var errLeft = errors.New("job: the step was interrupted")

// Step advances a job by one step. It returns when the next step is due, or over if there is none. After an error the
// job is unchanged or has another owner: the caller tries again shortly.
func (r *Runner) Step(ctx context.Context, id string) (due time.Time, over bool, err error) {
	if !r.enter(id) { // the next owner continues
		return r.Now().Add(Lease), false, nil
	}
	defer r.exit(id)
	j, err := r.Store.Get(ctx, id)
	if err != nil {
		return due, fault.CodeOf(err) == fault.RecordNotFound, err
	}
	now := r.Now()
	switch kind, known := r.Kinds[j.Kind]; {
	case j.State.Over():
		return due, true, nil
	case j.NextAt.After(now):
		return j.NextAt, false, nil
	case !known: // a kind of a newer version of the program
		return due, false, fmt.Errorf("job: no kind %q", j.Kind)
	case r.Unclustered && j.State == Running && j.Owner != r.Name && now.Before(j.BeatAt.Add(Lease)):
		return j.BeatAt.Add(Lease), false, nil
	default:
		j, err = r.step(ctx, kind, j)
	}
	if errors.Is(err, commit.ErrFenced) || errors.Is(err, errLeft) { // changed concurrently: read it again
		return now, false, nil
	}
	return j.NextAt, err == nil && j.State.Over(), err
}

// Busy reports whether a step of the job is running here.
func (r *Runner) Busy(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[id] > 0
}

// Wait returns when no step is running, or when ctx ends. It is called after Leaving has ended, when no step begins.
func (r *Runner) Wait(ctx context.Context) {
	done := make(chan struct{})
	r.mu.Lock() // a step that enter admitted before Leaving ended is counted, and no other one comes
	go func() { r.idle.Wait(); close(done) }()
	r.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (r *Runner) enter(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Leaving.Err() != nil {
		return false
	}
	if r.busy == nil {
		r.busy = map[string]int{}
	}
	r.busy[id]++
	r.idle.Add(1)
	return true
}

func (r *Runner) exit(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[id]--; r.busy[id] == 0 {
		delete(r.busy, id)
	}
	r.idle.Done()
}

func (r *Runner) step(ctx context.Context, k Kind, j Job) (Job, error) {
	params, err := r.Open(j.Params, []byte(j.ID))
	if err != nil {
		return r.saveFailure(ctx, j, fmt.Errorf("open the parameters: %w", err))
	}
	open := j
	open.Params = params
	if k.Items != nil {
		return r.items(ctx, *k.Items, j, open)
	}
	if j.Cancel {
		return r.save(ctx, j, func(j Job) Job { return j.ended(Cancelled, r.Now()) })
	}
	next, writes, err := r.call(ctx, k.Step, open)
	return r.keep(ctx, j, next, writes, err)
}

// keep saves the result of a step.
func (r *Runner) keep(ctx context.Context, j, next Job, writes []commit.Write, err error) (Job, error) {
	switch {
	case errors.Is(err, errLeft):
		return j, err
	case err != nil:
		return r.saveFailure(ctx, j, err)
	}
	saved, err := r.save(ctx, j, func(j Job) Job { return j.stepped(next, r.Now()) }, writes...)
	if refused(err) {
		return r.saveFailure(ctx, j, err)
	}
	return saved, err
}

// refused reports whether the database rejected the writes of a kind.
func refused(err error) bool {
	return err != nil && !errors.Is(err, commit.ErrFenced) && fault.CodeOf(err) != fault.Unavailable
}

// call runs a step of a kind. It interrupts the step, with errLeft, when the job is cancelled, changed, or must leave
// this node.
func (r *Runner) call(ctx context.Context, step func(context.Context, Job) (Job, []commit.Write, error),
	j Job) (next Job, writes []commit.Write, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	ctx, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	defer context.AfterFunc(r.Leaving, func() { breakOff(errLeft) })()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer breakOff(nil)
	watch.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now, err := r.Store.Get(ctx, j.ID); err == nil && now.Version != j.Version {
				breakOff(errLeft)
			}
		}
	})
	defer r.caught(j, &err)
	next, writes, err = step(ctx, j)
	if err != nil && errors.Is(context.Cause(ctx), errLeft) {
		err = errLeft
	}
	return next, writes, err
}

var (
	errPanic = errors.New("job: the kind panicked")
	errMoved = errors.New("job: a row that the kind writes has changed")
)

// caught turns a panic into an error. The stack is only logged.
func (r *Runner) caught(j Job, err *error) {
	if p := recover(); p != nil {
		r.Log.Error("a job panicked", "job", j.ID, "kind", j.Kind, "panic", p, "stack", string(debug.Stack()))
		*err = errPanic
	}
}

// saveFailure saves a failed attempt.
func (r *Runner) saveFailure(ctx context.Context, j Job, err error) (Job, error) {
	r.Log.Warn("a step of a job failed", "job", j.ID, "kind", j.Kind, "attempt", j.Attempts+1, "err", err)
	return r.save(ctx, j, func(j Job) Job { return j.afterFailure(public(err), r.Now()) })
}

// public returns the text of an error that a client may see.
func public(err error) string {
	var f *fault.Error
	if errors.As(err, &f) && f.Code != fault.Internal {
		return f.Message
	}
	return "internal error; see the log of the service"
}

// save commits the next version of a job, as returned by move, with writes. A concurrent cancel does not undo the step:
// move is called again. If the outcome of the commit is unknown, or the database is down, it reads the job and retries
// for settleTime. ErrFenced: the job has another owner; errMoved: a row fenced by the writes has changed.
func (r *Runner) save(ctx context.Context, j Job, move func(Job) Job, writes ...commit.Write) (Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for {
		next := move(j)
		next.Owner = r.Name
		err := r.Commit.Commit(ctx, append(writes[:len(writes):len(writes)], Save{next})...)
		next.Version++
		unclear := fault.CodeOf(err) == fault.Unavailable
		if err == nil || refused(err) {
			return next, err
		}
		if unclear && !pause(ctx, lookEvery) {
			return j, err
		}
		stored, rerr := r.Store.Get(ctx, j.ID)
		switch {
		case rerr != nil && !unclear:
			return j, err
		case rerr != nil || unclear && stored.Version == j.Version: // it was not saved
		case stored.Version == j.Version:
			return j, errMoved
		case same(stored, next):
			return stored, nil
		case stored.Version == next.Version && stored.Cancel && !j.Cancel:
			j = stored
		default:
			return j, commit.ErrFenced
		}
	}
}

// same reports whether the stored job is the one that this runner saved.
func same(stored, next Job) bool {
	return stored.Version == next.Version && stored.Owner == next.Owner && stored.Counts == next.Counts &&
		stored.Cursor == next.Cursor && stored.BeatAt.UnixMilli() == next.BeatAt.UnixMilli()
}

// pause returns false when ctx has ended before d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
