package trail

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"castellan/domain/kit/commit"
	"castellan/http/edge"
)

// Denials writes one audit row for the refusals (403) of one account or service client at one endpoint in one minute,
// regardless of their number and reasons (D-EXT-03). The first refusal writes the row before it is answered. The others
// are counted, and logged at the end of the minute.
type Denials struct {
	queue
	log   *slog.Logger
	noted map[denial]int // repetitions; guarded by queue.mu
}

// NewDenials returns the writer of refusals; now is the clock of its rows.
func NewDenials(c commit.Committer, now func() time.Time, log *slog.Logger) *Denials {
	return &Denials{queue: queue{commit: c, now: now, most: maxDenials, missing: "DENIALS_LOST",
		what: "refusals"}, log: log}
}

type denial struct {
	actor, key string
	minute     int64
}

// maxDenials bounds the remembered refusals, and the queue while the database cannot be written. denialTime is how long
// a refusal may be delayed by its row.
const (
	maxDenials = 10_000
	denialTime = time.Second
)

// Observe writes the row of a first refusal, and waits at most denialTime for it.
func (d *Denials) Observe(a edge.Answered) {
	actor := a.Caller.By().UserID
	if a.Status != http.StatusForbidden || actor == "" {
		return
	}
	r := rowOf(a, d.now())
	r.UserID, r.Action, r.Detail = a.Caller.UserID, "DENIED", string(a.Code)
	if !d.first(denial{actor, a.Key, r.At.Unix() / 60}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), denialTime)
	defer cancel()
	if d.commit.Commit(ctx, r) != nil {
		d.wait(r)
	}
}

// first reports whether a denial must be written because it is the first of its minute.
func (d *Denials) first(k denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.noted[k]; known {
		d.noted[k]++
		return false
	}
	if len(d.noted) >= maxDenials {
		d.lost++
		return false
	}
	if d.noted == nil {
		d.noted = map[denial]int{}
	}
	d.noted[k] = 0
	return true
}

// Flush writes the queued rows and drops the minutes that are over; at the end, all minutes. It is called by one
// goroutine at a time.
func (d *Denials) Flush(ctx context.Context, all bool) error {
	d.forget(all)
	return d.queue.Flush(ctx)
}

// forget logs the repetitions of the minutes that it drops.
func (d *Denials) forget(all bool) {
	this := d.now().Unix() / 60
	repeated := map[denial]int{}
	d.mu.Lock()
	for k, n := range d.noted {
		if k.minute == this && !all {
			continue
		}
		delete(d.noted, k)
		if n > 0 {
			repeated[k] = n
		}
	}
	d.mu.Unlock()
	for k, n := range repeated {
		d.log.Info("refused again in the same minute", "userId", k.actor, "route", k.key, "times", n)
	}
}
