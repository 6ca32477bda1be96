// Package trail writes the audit rows of answered requests: refusals (Denials) and calls by a grant of AUDIT (Calls).
//
// The one idea: a row that cannot be written waits in a bounded queue, and the rows that do not fit are counted in the
// trail.
//
// Start reading at Denials and Calls.
package trail

import (
	"context"
	"fmt"
	"sync"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/http/edge"
)

// queue holds audit rows that are not written yet. They wait while the database cannot be written; rows that do
// not fit are counted in the trail.
type queue struct {
	commit  commit.Committer
	now     func() time.Time
	most    int    // that wait
	missing string // the action of the row that reports the lost rows
	what    string // these are

	mu      sync.Mutex
	waiting []commit.Write
	lost    int // beyond most
}

// maxRowBatch bounds the rows of one unit.
const maxRowBatch = 500

// rowOf returns the row of a request without its details.
func rowOf(a edge.Answered, at time.Time) audit.Record {
	r := audit.Record{At: at, ActorID: a.Caller.By().UserID, Target: a.Key, Outcome: audit.Refused,
		RequestID: a.Caller.RequestID}
	if a.Caller.IP.IsValid() {
		r.IP = a.Caller.IP.String()
	}
	return r
}

func (q *queue) wait(r audit.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) < q.most {
		q.waiting = append(q.waiting, r)
	} else {
		q.lost++
	}
}

// Flush writes the queued rows, in batches. It is called by one goroutine at a time.
func (q *queue) Flush(ctx context.Context) error {
	for {
		q.mu.Lock()
		batch := q.waiting[:min(len(q.waiting), maxRowBatch)]
		lost := q.lost
		q.mu.Unlock()
		if len(batch) == 0 && lost == 0 {
			return nil
		}
		ws := append(make([]commit.Write, 0, len(batch)+1), batch...)
		if lost > 0 {
			ws = append(ws, audit.Record{At: q.now(), Action: q.missing, Outcome: audit.Refused,
				Detail: fmt.Sprintf("%d %s have no row", lost, q.what)})
		}
		if err := q.commit.Commit(ctx, ws...); err != nil {
			return err
		}
		q.mu.Lock()
		if q.waiting = q.waiting[len(batch):]; len(q.waiting) == 0 {
			q.waiting = nil
		}
		q.lost -= lost
		q.mu.Unlock()
	}
}
