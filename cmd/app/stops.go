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
type stops struct {
	started time.Time
	last    atomic.Int64 // the last beat, on the clock of started
	until   atomic.Int64 // while what arrives may have been sent before the stop
	mu      sync.Mutex
	base    context.Context
	cancel  context.CancelCauseFunc
}

const (
	stopBeat = 50 * time.Millisecond
	// stopTime is how long a client waits before he turns to another node.
	stopTime = 900 * time.Millisecond
	// stopWake is how long after a stop connections may hold what was sent before.
	stopWake = 3 * time.Second
)

var errStopped = fault.New(fault.Unavailable, "the node was stopped for a while; try again").After(time.Second)

func newStops() *stops {
	s := &stops{started: time.Now()}
	s.base, s.cancel = context.WithCancelCause(context.Background())
	return s
}

func (s *stops) clock() int64 { return int64(time.Since(s.started)) }

// over reports whether the process has been stopped and beat does not know yet.
func (s *stops) over() bool { return s.clock()-s.last.Load() > int64(stopTime) }

// beat is to be called all the time. What was under way ends before over is false
// again, so that whoever asks check is told by one or the other.
func (s *stops) beat() {
	if s.over() {
		s.until.Store(s.clock() + int64(stopWake))
		s.mu.Lock()
		s.cancel(errStopped)
		s.base, s.cancel = context.WithCancelCause(context.Background())
		s.mu.Unlock()
	}
	s.last.Store(s.clock())
}

// run beats until ctx ends.
func (s *stops) run(ctx context.Context) {
	tick := time.NewTicker(stopBeat)
	defer tick.Stop()
	for {
		s.beat()
		select {
		case <-ctx.Done():
			s.last.Store(int64(1) << 62) // a node that ends is not stopped
			return
		case <-tick.C:
		}
	}
}

// context is the one that requests are under.
func (s *stops) context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

// woke reports whether what arrives now may have been sent before a stop.
func (s *stops) woke() bool { return s.over() || s.clock() < s.until.Load() }

// check is asked before anything takes effect.
func (s *stops) check(ctx context.Context) error {
	if s.over() || context.Cause(ctx) == errStopped {
		return errStopped
	}
	return nil
}
