// Package pause detects that the process did not run for a while (docs/architecture.md, section 5.5).
//
// Start reading at Detector.
package pause

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/fault"
)

// Detector detects that the process did not run for a while, as after a paused machine or a SIGSTOP. A resumed
// process must not execute requests whose clients have already retried on another node. So the context of every request
// under way ends, and neither the writer nor an owner on another node receives any of its effects.
//
// A node without a cluster has no pause detector: its clients cannot go elsewhere.
type Detector struct {
	started time.Time
	last    atomic.Int64 // the last beat, in nanoseconds since started
	until   atomic.Int64 // until then, input may have been sent before the pause
	mu      sync.Mutex
	base    context.Context
	cancel  context.CancelCauseFunc
}

const (
	beatInterval = 50 * time.Millisecond
	// clientPatience is how long a client waits before it tries another node.
	clientPatience = 900 * time.Millisecond
	// staleInputTime is how long after a pause connections may hold input from before.
	staleInputTime = 3 * time.Second
)

var errPaused = fault.New(fault.Unavailable, "the node was suspended; try again").After(time.Second)

// never is the beat of a process that serves no requests: it cannot have slept through one.
const never = int64(1) << 62

// New returns a detector. Before its first Beat the process starts, for as long as that takes, and is not paused.
func New() *Detector {
	d := &Detector{started: time.Now()}
	d.last.Store(never)
	d.base, d.cancel = context.WithCancelCause(context.Background())
	return d
}

func (d *Detector) clock() int64 { return int64(time.Since(d.started)) }

// paused reports a pause that Beat has not detected yet.
func (d *Detector) paused() bool { return d.clock()-d.last.Load() > int64(clientPatience) }

// Beat is called every beatInterval. It ends the requests under way before paused becomes false again, so that Check
// detects one or the other.
func (d *Detector) Beat() {
	if d.paused() {
		d.until.Store(d.clock() + int64(staleInputTime))
		d.mu.Lock()
		d.cancel(errPaused)
		d.base, d.cancel = context.WithCancelCause(context.Background())
		d.mu.Unlock()
	}
	d.last.Store(d.clock())
}

// Run beats until ctx ends.
func (d *Detector) Run(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		d.Beat()
		select {
		case <-ctx.Done():
			d.last.Store(never)
			return
		case <-tick.C:
		}
	}
}

// Context returns the parent of the contexts of requests.
func (d *Detector) Context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base
}

// Resumed reports whether current input may have been sent before a pause.
func (d *Detector) Resumed() bool { return d.paused() || d.clock() < d.until.Load() }

// Check is called before any effect of a request.
func (d *Detector) Check(ctx context.Context) error {
	if d.paused() || context.Cause(ctx) == errPaused {
		return errPaused
	}
	return nil
}
