package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"castellan/domain/audit"
	"castellan/domain/commit"
	"castellan/http/edge"
)

// rows are audit rows on their way: they wait while the database cannot be
// written, and of what has no room the trail says how much it was.
type rows struct {
	commit  commit.Committer
	now     func() time.Time
	most    int    // that wait
	missing string // the action of the row that tells of the others
	what    string // these are

	mu      sync.Mutex
	waiting []commit.Write
	lost    int // beyond most
}

// maxRowBatch bounds one unit.
const maxRowBatch = 500

// rowOf is the row of a request without what it is to say.
func rowOf(a edge.Answered, at time.Time) audit.Record {
	r := audit.Record{At: at, ActorID: a.Caller.UserID, Target: a.Key, Outcome: audit.Refused, RequestID: a.Caller.RequestID}
	if a.Caller.IP.IsValid() {
		r.IP = a.Caller.IP.String()
	}
	return r
}

func (s *rows) wait(r audit.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) < s.most {
		s.waiting = append(s.waiting, r)
	} else {
		s.lost++
	}
}

// flush writes what waits, in batches. It is called by one goroutine at a time.
func (s *rows) flush(ctx context.Context) error {
	for {
		s.mu.Lock()
		batch := s.waiting[:min(len(s.waiting), maxRowBatch)]
		lost := s.lost
		s.mu.Unlock()
		if len(batch) == 0 && lost == 0 {
			return nil
		}
		ws := append(make([]commit.Write, 0, len(batch)+1), batch...)
		if lost > 0 {
			ws = append(ws, audit.Record{At: s.now(), Action: s.missing, Outcome: audit.Refused, Detail: fmt.Sprintf("%d %s have no row", lost, s.what)})
		}
		if err := s.commit.Commit(ctx, ws...); err != nil {
			return err
		}
		s.mu.Lock()
		if s.waiting = s.waiting[len(batch):]; len(s.waiting) == 0 {
			s.waiting = nil
		}
		s.lost -= lost
		s.mu.Unlock()
	}
}
