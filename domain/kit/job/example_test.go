package job_test

import (
	"context"
	"testing"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
)

// The kind of job in docs/jobs.md.
type prices interface {
	Fetch(ctx context.Context) ([]commit.Write, error)
}

func Kind(p prices) job.Kind {
	return job.Kind{Name: "prices", Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		writes, err := p.Fetch(ctx)
		j.Total, j.Done = int64(len(writes)), int64(len(writes))
		return j.Finish(""), writes, err
	}}
}

var Every = job.Schedule{Kind: "prices", Every: 5 * time.Minute}

type three struct{}

func (three) Fetch(context.Context) ([]commit.Write, error) {
	return []commit.Write{change.Note{}, change.Note{}, change.Note{}}, nil
}

func TestKindOfTheDocument(t *testing.T) {
	j, writes, err := Kind(three{}).Step(t.Context(), job.Job{Kind: Every.Kind})
	if err != nil || len(writes) != 3 || j.State != job.Done || j.Done != 3 {
		t.Errorf("%+v, %d writes, %v", j, len(writes), err)
	}
}

// The slot of an instant is the one that began last, on every clock.
func TestSlots(t *testing.T) {
	s := job.Schedule{Every: 5 * time.Minute, Back: 1}
	east := time.FixedZone("east", 3*3600+1800)
	for at, want := range map[string][2]string{
		"2026-11-22T17:50:00Z":     {"2026-11-22T17:45:00Z", "2026-11-22T17:50:00Z"},
		"2026-11-22T17:49:59.999Z": {"2026-11-22T17:40:00Z", "2026-11-22T17:45:00Z"},
		"2026-01-01T00:00:01Z":     {"2025-12-31T23:55:00Z", "2026-01-01T00:00:00Z"},
	} {
		now := storetest.Value(time.Parse(time.RFC3339, at))(t)
		for _, now := range []time.Time{now, now.In(east)} {
			if got := s.Slots(now); len(got) != 2 || [2]string(got) != want {
				t.Errorf("%s: %v, want %v", now, got, want)
			}
		}
		storetest.Equal(t, storetest.Value((job.Job{Key: want[1]}).Slot())(t).Format(time.RFC3339), want[1])
	}
}
