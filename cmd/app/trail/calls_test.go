package trail

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/http/edge"
	"castellan/http/rest"
)

// trail is a committer that keeps audit rows, and fails or hangs on request.
type trail struct {
	commit.Committer
	mu    sync.Mutex
	rows  []audit.Record
	units int
	err   error
	hold  chan struct{} // a commit waits until it is closed; nil: none waits
}

func (c *trail) Commit(_ context.Context, ws ...commit.Write) error {
	c.mu.Lock()
	hold, err := c.hold, c.err
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.units++
	for _, w := range ws {
		c.rows = append(c.rows, w.(audit.Record))
	}
	return nil
}

// kept returns the rows written so far.
func (c *trail) kept() (rows []audit.Record, units int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rows), c.units
}

func (c *trail) set(err error, hold chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.hold = err, hold
}

func call(status int) edge.Answered {
	return edge.Answered{Endpoint: &rest.Endpoint{}, Key: "GET /x", Status: status,
		Caller: rest.Caller{UserID: "u1", IP: netip.MustParseAddr("192.0.2.9"), RequestID: "r1"}}
}

func TestAuditedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &trail{}
		c := NewCalls(to, func(who rest.Caller, _ *rest.Endpoint) bool { return who.UserID == "u1" }, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		var complaints atomic.Int32
		done := make(chan struct{})
		go func() { c.Run(ctx, func(error) { complaints.Add(1) }); close(done) }()

		// One row for every audited call, with its outcome, and none for other calls.
		c.Observe(call(200))
		c.Observe(call(409))
		other, anonymous, unmatched := call(200), call(401), call(404)
		other.Caller.UserID, anonymous.Caller.UserID, unmatched.Endpoint = "u2", "", nil
		c.Observe(other)
		c.Observe(anonymous)
		c.Observe(unmatched)
		synctest.Wait()
		rows, _ := to.kept()
		if len(rows) != 2 {
			t.Fatalf("%d rows: %+v", len(rows), rows)
		}
		for i, want := range []audit.Record{{Outcome: audit.Success, Detail: "status 200"}, {Outcome: audit.Refused,
			Detail: "status 409"}} {
			want.At, want.ActorID, want.Action, want.Target, want.IP, want.RequestID = time.Now(), "u1", "CALL", "GET /x",
				"192.0.2.9", "r1"
			if rows[i] != want {
				t.Errorf("row %+v, want %+v", rows[i], want)
			}
		}

		// A hanging database delays no request, and the queue is written at once afterwards.
		hold := make(chan struct{})
		to.set(nil, hold)
		before := time.Now()
		for range 1000 {
			c.Observe(call(200))
		}
		synctest.Wait()
		if rows, _ := to.kept(); time.Since(before) != 0 || len(rows) != 2 {
			t.Errorf("requests waited %v, %d rows", time.Since(before), len(rows))
		}
		to.set(nil, nil)
		close(hold)
		synctest.Wait()
		if rows, units := to.kept(); len(rows) != 1002 || units > 5 {
			t.Errorf("%d rows in %d units", len(rows), units)
		}

		// A failure is reported once and retried; rows that do not fit are counted.
		to.set(fault.New(fault.Unavailable, "down"), nil)
		for range maxCalls + 3 {
			c.Observe(call(200))
		}
		time.Sleep(5 * callRetry)
		if rows, _ := to.kept(); complaints.Load() != 1 || len(rows) != 1002 {
			t.Errorf("%d complaints, %d rows", complaints.Load(), len(rows))
		}
		to.set(nil, nil)
		time.Sleep(2 * callRetry)
		lost := 0
		rows, _ = to.kept()
		for _, r := range rows {
			if r.Action == "CALLS_LOST" {
				lost++
				if r.Detail != "3 audited calls have no row" {
					t.Errorf("%+v", r)
				}
			}
		}
		if len(rows) != 1002+maxCalls+1 || lost != 1 {
			t.Errorf("%d rows, %d of them of losses", len(rows), lost)
		}

		// Rows that arrive while the service stops are written by the last flush.
		stop()
		<-done
		c.Observe(call(200))
		err := c.Flush(t.Context())
		if rows, _ := to.kept(); err != nil || len(rows) != 1002+maxCalls+2 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		to.set(errors.New("down"), nil)
		c.Observe(call(200))
		if err := c.Flush(t.Context()); err == nil || len(c.waiting) != 1 {
			t.Error(fmt.Sprint("what was not written was thrown away: ", err))
		}
	})
}
