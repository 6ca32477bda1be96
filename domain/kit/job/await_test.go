package job_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/job"
)

// polled is a job that is complete from the third read on.
type polled struct {
	job.Store
	reads int
	err   error
}

func (p *polled) Get(_ context.Context, id string) (job.Job, error) {
	p.reads++
	j := job.Job{ID: id, State: job.Running}
	if p.reads > 2 {
		j.State = job.Done
	}
	return j, p.err
}

// A job is read every quarter of a second, until it is as awaited, the time has passed, the node leaves or a read
// fails.
func TestAwait(t *testing.T) {
	done := func(j job.Job) bool { return j.State == job.Done }
	for name, c := range map[string]struct {
		wait, leaves time.Duration
		err          error
		reads        int
		took         time.Duration
	}{
		"complete":          {wait: time.Second, reads: 3, took: 500 * time.Millisecond},
		"the time passes":   {wait: 300 * time.Millisecond, reads: 2, took: 300 * time.Millisecond},
		"the node leaves":   {wait: time.Second, leaves: 100 * time.Millisecond, reads: 1, took: 100 * time.Millisecond},
		"it leaves later":   {wait: time.Second, leaves: time.Minute, reads: 3, took: 500 * time.Millisecond},
		"the read fails":    {wait: time.Second, err: errors.New("down"), reads: 1},
		"it is not awaited": {reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &polled{err: c.err}
				s := &job.Service{Store: p}
				if c.leaves > 0 {
					leaving, stop := context.WithTimeout(t.Context(), c.leaves)
					defer stop()
					s.Leaving = leaving
				}
				begin := time.Now()
				j, err := s.Await(t.Context(), "j1", c.wait, done)
				if !errors.Is(err, c.err) || j.ID != "j1" || p.reads != c.reads || time.Since(begin) != c.took ||
					done(j) != (c.reads == 3) {
					t.Errorf("%+v, %v after %d reads and %s", j, err, p.reads, time.Since(begin))
				}
			})
		})
	}
}
