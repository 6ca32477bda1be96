package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"castellan/domain/audit"
	"castellan/domain/commit"
	"castellan/http/rest"
)

// calls writes an audit row for every call that a grant of AUDIT let through
// (D-AUTH-03). A request leaves its row and goes on; rows are committed behind
// it, all that wait at once. What cannot be written waits for the next try.
type calls struct {
	commit  commit.Committer
	audited func(rest.Caller, *rest.Endpoint) bool
	now     func() time.Time
	wake    chan struct{}

	mu      sync.Mutex
	waiting []commit.Write
	lost    int // beyond maxCalls: the trail says how many
}

// maxCalls bounds what waits while the database cannot be written.
const maxCalls = 20_000

// maxCallBatch bounds one unit, callRetry is the pause after a failed one.
const (
	maxCallBatch = 500
	callRetry    = time.Second
)

func newCalls(c commit.Committer, audited func(rest.Caller, *rest.Endpoint) bool, now func() time.Time) *calls {
	return &calls{commit: c, audited: audited, now: now, wake: make(chan struct{}, 1)}
}

// observe never blocks. What was refused for want of a permission is the
// denials' to tell.
func (c *calls) observe(a rest.Answered) {
	if a.Endpoint == nil || a.Caller.UserID == "" || !c.audited(a.Caller, a.Endpoint) {
		return
	}
	r := audit.Record{At: c.now(), ActorID: a.Caller.UserID, Action: "CALL", Target: a.Key, Outcome: audit.Success,
		RequestID: a.Caller.RequestID, Detail: fmt.Sprintf("status %d", a.Status)}
	if a.Caller.IP.IsValid() {
		r.IP = a.Caller.IP.String()
	}
	if a.Status >= 400 {
		r.Outcome = audit.Refused
	}
	c.mu.Lock()
	if len(c.waiting) < maxCalls {
		c.waiting = append(c.waiting, r)
	} else {
		c.lost++
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // awake already
	}
}

// run writes until ctx ends; report is told once per run of failures.
func (c *calls) run(ctx context.Context, report func(error)) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		for {
			err := c.flush(ctx)
			if err == nil {
				failing = false
				break
			}
			if !failing && ctx.Err() == nil {
				report(err)
			}
			failing = true
			pause := time.NewTimer(callRetry)
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
			}
		}
	}
}

// flush writes what waits, in batches. It is called by one goroutine at a time.
func (c *calls) flush(ctx context.Context) error {
	for {
		c.mu.Lock()
		batch := c.waiting[:min(len(c.waiting), maxCallBatch)]
		lost := c.lost
		c.mu.Unlock()
		if len(batch) == 0 && lost == 0 {
			return nil
		}
		ws := append(make([]commit.Write, 0, len(batch)+1), batch...)
		if lost > 0 {
			ws = append(ws, audit.Record{At: c.now(), Action: "CALLS_LOST", Outcome: audit.Refused, Detail: fmt.Sprintf("%d audited calls have no row", lost)})
		}
		if err := c.commit.Commit(ctx, ws...); err != nil {
			return err
		}
		c.mu.Lock()
		if c.waiting = c.waiting[len(batch):]; len(c.waiting) == 0 {
			c.waiting = nil
		}
		c.lost -= lost
		c.mu.Unlock()
	}
}
