package session

import (
	"context"
	"slices"
	"sync"
	"time"

	"castellan/domain/kit/commit"
)

// seenEvery is the interval at which the last use of one session is written (D-AUTH-01).
const seenEvery = time.Minute

// Activity collects which sessions are in use. A request then costs a lookup, and the database one statement a
// minute. Unwritten uses are lost with the process. It is safe for concurrent use.
type Activity struct {
	commit commit.Committer
	now    func() time.Time

	mu    sync.RWMutex
	noted map[string]int64 // by session: ms of the recorded use
	due   []Seen
}

// NewActivity returns an empty Activity.
func NewActivity(c commit.Committer, now func() time.Time) *Activity {
	return &Activity{commit: c, now: now, noted: map[string]int64{}}
}

// Touch records that a session is in use. It does not block on the database.
func (a *Activity) Touch(sessionID string) {
	now := a.now()
	a.mu.RLock()
	last, ok := a.noted[sessionID]
	a.mu.RUnlock()
	if ok && now.UnixMilli()-last < seenEvery.Milliseconds() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.noted[sessionID]; ok && now.UnixMilli()-last < seenEvery.Milliseconds() {
		return // recorded by a concurrent request
	}
	a.noted[sessionID] = now.UnixMilli()
	a.due = append(a.due, Seen{sessionID, now})
}

// maxSeen bounds one unit of writes.
const maxSeen = 512

// Flush writes the recorded uses. A use that cannot be written is dropped: the next use of the session, a minute
// later, is recorded again.
func (a *Activity) Flush(ctx context.Context) error {
	a.mu.Lock()
	due := a.due
	a.due = nil
	old := a.now().UnixMilli() - seenEvery.Milliseconds()
	for id, at := range a.noted {
		if at <= old {
			delete(a.noted, id)
		}
	}
	a.mu.Unlock()
	for part := range slices.Chunk(due, maxSeen) {
		writes := make([]commit.Write, len(part))
		for i, s := range part {
			writes[i] = s
		}
		if err := a.commit.Commit(ctx, writes...); err != nil {
			return err
		}
	}
	return nil
}

// Run flushes every few seconds until ctx ends, and once more then. It passes errors to report.
func (a *Activity) Run(ctx context.Context, report func(error)) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err := a.Flush(bound)
		cancel()
		if err != nil {
			report(err)
		}
		if last {
			return
		}
	}
}
