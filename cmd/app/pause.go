package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/fault"
)

// pauseDetector detects that the process did not run for a while, as after a paused machine or a SIGSTOP. A resumed
// process must not execute requests whose clients have already retried on another node. So the context of every request
// under way ends, and neither the writer nor an owner on another node receives any of its effects.
//
// A node without a cluster has no pause detector: its clients cannot go elsewhere.
type pauseDetector struct {
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

var errPaused = fault.New(fault.Unavailable, "the node was stopped for a while; try again").After(time.Second)

func newPauseDetector() *pauseDetector {
	d := &pauseDetector{started: time.Now()}
	d.base, d.cancel = context.WithCancelCause(context.Background())
	return d
}

func (d *pauseDetector) clock() int64 { return int64(time.Since(d.started)) }

// paused reports a pause that beat has not detected yet.
func (d *pauseDetector) paused() bool { return d.clock()-d.last.Load() > int64(clientPatience) }

// beat is called every beatInterval. It ends the requests under way before paused becomes false again, so that check
// detects one or the other.
func (d *pauseDetector) beat() {
	if d.paused() {
		d.until.Store(d.clock() + int64(staleInputTime))
		d.mu.Lock()
		d.cancel(errPaused)
		d.base, d.cancel = context.WithCancelCause(context.Background())
		d.mu.Unlock()
	}
	d.last.Store(d.clock())
}

// run beats until ctx ends.
func (d *pauseDetector) run(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		d.beat()
		select {
		case <-ctx.Done():
			d.last.Store(int64(1) << 62) // a stopping node is not paused
			return
		case <-tick.C:
		}
	}
}

// context returns the parent of the contexts of requests.
func (d *pauseDetector) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base
}

// resumed reports whether current input may have been sent before a pause.
func (d *pauseDetector) resumed() bool { return d.paused() || d.clock() < d.until.Load() }

// check is called before any effect of a request.
func (d *pauseDetector) check(ctx context.Context) error {
	if d.paused() || context.Cause(ctx) == errPaused {
		return errPaused
	}
	return nil
}
