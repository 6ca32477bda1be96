package app

import (
	"context"
	"net/http"
	"sync"
	"time"

	"castellan/domain/audit"
	"castellan/domain/commit"
	"castellan/http/rest"
)

// denials writes one audit row for the refusals (403) of one caller at one
// endpoint in one minute, however many there were (D-EXT-03).
type denials struct {
	commit commit.Committer
	now    func() time.Time

	mu    sync.Mutex
	noted map[denial]int
}

type denial struct {
	userID, key, code string
	minute            int64
}

// maxDenials bounds what is remembered between two writes.
const maxDenials = 10_000

func (d *denials) observe(a rest.Answered) {
	if a.Status != http.StatusForbidden || a.Caller.UserID == "" {
		return
	}
	k := denial{a.Caller.UserID, a.Key, string(a.Code), d.now().Unix() / 60}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noted == nil {
		d.noted = map[denial]int{}
	}
	if _, known := d.noted[k]; known || len(d.noted) < maxDenials {
		d.noted[k]++
	}
}

// flush writes what was noted in minutes that are over; all of it at the end.
func (d *denials) flush(ctx context.Context, all bool) error {
	this := d.now().Unix() / 60
	var ws []commit.Write
	d.mu.Lock()
	for k, n := range d.noted {
		if k.minute == this && !all {
			continue
		}
		delete(d.noted, k)
		detail := k.code
		if n > 1 {
			detail += ", repeated"
		}
		ws = append(ws, audit.Record{At: time.Unix(k.minute*60, 0), ActorID: k.userID, UserID: k.userID, Action: "DENIED", Target: k.key, Outcome: audit.Refused, Detail: detail})
	}
	d.mu.Unlock()
	if len(ws) == 0 {
		return nil
	}
	return d.commit.Commit(ctx, ws...)
}
