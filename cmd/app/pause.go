package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/fault"
)

// stops notices that the process was stopped for a while, as a paused machine or
// a SIGSTOP does, and keeps it from going on where it was: whoever waited has gone
// to another node, and what he did there must not be followed by what he asked for
// here before. The context of every request that was under way ends, and neither
// the writer nor an owner elsewhere is given anything of it.
//
// A node that is alone has nobody who goes elsewhere; it does not look.
type pauseDetector struct {
	started time.Time
	last    atomic.Int64 // the last beat, on the clock of started
	until   atomic.Int64 // while what arrives may have been sent before the stop
	mu      sync.Mutex
	base    context.Context
	cancel  context.CancelCauseFunc
}

const (
	beatInterval = 50 * time.Millisecond
	// stopTime is how long a client waits before he turns to another node.
	clientPatience = 900 * time.Millisecond
	// stopWake is how long after a stop connections may hold what was sent before.
	staleInputTime = 3 * time.Second
)

var errPaused = fault.New(fault.Unavailable, "the node was stopped for a while; try again").After(time.Second)

func newPauseDetector() *pauseDetector {
	d := &pauseDetector{started: time.Now()}
	d.base, d.cancel = context.WithCancelCause(context.Background())
	return d
}

func (d *pauseDetector) clock() int64 { return int64(time.Since(d.started)) }

// over reports whether the process has been stopped and beat does not know yet.
func (d *pauseDetector) paused() bool { return d.clock()-d.last.Load() > int64(clientPatience) }

// beat is to be called all the time. What was under way ends before over is false
// again, so that whoever asks check is told by one or the other.
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
			d.last.Store(int64(1) << 62) // a node that ends is not stopped
			return
		case <-tick.C:
		}
	}
}

// context is the one that requests are under.
func (d *pauseDetector) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base
}

// woke reports whether what arrives now may have been sent before a stop.
func (d *pauseDetector) resumed() bool { return d.paused() || d.clock() < d.until.Load() }

// check is asked before anything takes effect.
func (d *pauseDetector) check(ctx context.Context) error {
	if d.paused() || context.Cause(ctx) == errPaused {
		return errPaused
	}
	return nil
}
