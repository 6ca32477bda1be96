package trail

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/http/edge"
	"castellan/http/rest"
)

// Calls writes an audit row for every call that a grant of AUDIT allowed (D-AUTH-03). A request queues its row and
// continues; all queued rows are committed together in the background. A row that cannot be written waits for the next
// try.
type Calls struct {
	queue
	audited func(rest.Caller, *rest.Endpoint) bool
	wake    chan struct{}
}

// maxCalls bounds the queue while the database cannot be written.
const maxCalls = 20_000

// callRetry is the pause after a unit that failed.
const callRetry = time.Second

// NewCalls returns the queue of calls for which audited holds. Its rows are written by Run.
func NewCalls(c commit.Committer, audited func(rest.Caller, *rest.Endpoint) bool, now func() time.Time) *Calls {
	return &Calls{queue: queue{commit: c, now: now, most: maxCalls, missing: "CALLS_LOST",
		what: "audited calls"},
		audited: audited, wake: make(chan struct{}, 1)}
}

// Observe never blocks. Refusals for lack of a permission are left to Denials.
func (c *Calls) Observe(a edge.Answered) {
	if a.Endpoint == nil || a.Caller.By().UserID == "" || !c.audited(a.Caller, a.Endpoint) {
		return
	}
	r := rowOf(a, c.now())
	r.Action, r.Detail = "CALL", fmt.Sprintf("status %d", a.Status)
	if a.Status < 400 {
		r.Outcome = audit.Success
	}
	c.wait(r)
	c.flushSoon()
}

func (c *Calls) flushSoon() {
	select {
	case c.wake <- struct{}{}:
	default: // awake already
	}
}

// Run writes until ctx ends; report is called once per series of failures.
func (c *Calls) Run(ctx context.Context, report func(error)) {
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		err := c.Flush(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			report(err)
		}
		if failing = err != nil; failing {
			select {
			case <-ctx.Done():
			case <-time.After(callRetry):
				c.flushSoon()
			}
		}
	}
}
