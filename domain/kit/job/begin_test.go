package job_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/job"
)

// busy is a store that fails, as the scheduler asks.
type busy struct {
	job.Store
	started, add error
	added        int
}

func (b *busy) Started(context.Context, string, []string) ([]string, error) { return nil, b.started }

func (b *busy) Add(_ context.Context, j job.Job) (job.Job, bool, error) {
	b.added++
	return j, true, b.add
}

// A slot whose job could not be started is tried again with the next tick; a settled one is not.
func TestSchedulerRetries(t *testing.T) {
	b := &busy{started: errDown}
	s := job.Scheduler{Schedules: []job.Schedule{{Kind: "hourly", Every: time.Hour, Back: 1}},
		Service: &job.Service{Store: b, Changes: admin.Changes{Now: func() time.Time { return time.Unix(7200, 0) }},
			Seal: func(plain, _ []byte) []byte { return plain }}}
	for _, c := range []struct {
		started, add error
		added        int
		want         error
	}{{errDown, nil, 0, errDown}, {nil, errDown, 1, errDown}, {nil, nil, 3, nil}, {errDown, errDown, 3, nil}} {
		b.started, b.add = c.started, c.add
		if err := s.Tick(t.Context()); !errors.Is(err, c.want) || b.added != c.added {
			t.Errorf("%v, %d jobs; want %v, %d", err, b.added, c.want, c.added)
		}
	}
}

// A job begins at the wanted time, which is not in the past, and its parameters are JSON.
func TestStartOfAJob(t *testing.T) {
	b, now := &busy{}, time.Unix(7200, 0)
	woken := ""
	s := &job.Service{Store: b, Changes: admin.Changes{Now: func() time.Time { return now }},
		Wake: func(id string) { woken = id }, Seal: func(plain, _ []byte) []byte { return plain }}
	later := now.Add(time.Hour)
	for at, want := range map[time.Time]time.Time{{}: now, now.Add(-time.Hour): now, later: later} {
		j, started, err := s.Start(t.Context(), audit.By{UserID: "u1"}, job.Request{Kind: "k", At: at, Params: 5})
		if err != nil || !started || !j.NextAt.Equal(want) || j.Key != j.ID || string(j.Params) != "5" ||
			j.ActorID != "u1" || woken != j.ID {
			t.Errorf("%v: %+v, %v", at, j, err)
		}
	}
	b.added = 0
	_, started, err := s.Start(t.Context(), audit.By{}, job.Request{Kind: "k", Params: func() {}})
	if err == nil || started || b.added != 0 {
		t.Errorf("parameters that are no JSON: %v", err)
	}
	b.add, woken = errDown, ""
	if _, _, err := s.Start(t.Context(), audit.By{}, job.Request{Kind: "k"}); !errors.Is(err, errDown) || woken != "" {
		t.Errorf("%v, %q", err, woken)
	}
	var text string
	if err := (job.Job{Params: []byte("5")}).Into(&text); err == nil || text != "" {
		t.Errorf("a number as text: %q, %v", text, err)
	}
	if !job.IsLater(job.Later(errDown)) || job.IsLater(job.Unsure(errDown)) || !errors.Is(job.Later(errDown), errDown) {
		t.Error("later is not told from unsure")
	}
}
