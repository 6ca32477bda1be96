package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
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

// waiting is a store of a job that waits.
type waiting struct{ job.Store }

func (waiting) Get(_ context.Context, id string) (job.Job, error) {
	return job.Job{ID: id, Kind: "k", State: job.Queued}, nil
}

// A change is tried 32 times while the owner of the job is faster. Its owner is notified only after it.
func TestChangeOfABusyJob(t *testing.T) {
	for fences, want := range map[int]error{0: nil, 31: nil, 32: commit.ErrFenced} {
		units, woken := &storetest.Units{Fails: slices.Repeat([]error{commit.ErrFenced}, fences)}, 0
		s := &job.Service{Store: waiting{}, Changes: admin.Changes{Commit: units, Now: time.Now},
			Wake: func(string) { woken++ }}
		storetest.Is(t, s.Cancel(t.Context(), audit.By{UserID: "u1"}, "j1"), want, fences)
		if done := want == nil; woken != len(units.Audit()) || done != (woken == 1) {
			t.Errorf("after %d fences: %d notified, %v", fences, woken, units.Audit())
		}
	}
}

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

// A step that begins while the node leaves is awaited or refused: none is running after Wait. Only the race detector
// finds an unordered count in each run.
func TestLeaveAwaitsEveryStep(t *testing.T) {
	for range 200 {
		d := newDisk()
		r := d.runner(t, job.Kind{Name: "half", Step: half})
		leaving, leave := context.WithCancel(t.Context())
		r.Leaving = leaving
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if _, _, err := r.Step(t.Context(), "j1"); err != nil {
				t.Error(err)
			}
		}()
		leave()
		r.Wait(t.Context())
		if r.Busy("j1") {
			t.Fatal("a step is running after Wait")
		}
		<-ended
	}
}

// A job lists twenty reasons with their first items and counts the rest together. Other values of the job are
// unchanged.
func TestFailures(t *testing.T) {
	var j job.Job
	for n := range 100 {
		before := len(j.Failures)
		next := j.Fail(fmt.Sprint("r", n), fault.New(fault.InvalidState, "reason %d", n%25))
		if len(j.Failures) != before {
			t.Fatal("the job before has changed")
		}
		j = next
	}
	j = j.Fail("x", errors.New("secret"))
	first, rest := j.Failures[0], j.Failures[20]
	if len(j.Failures) != 21 || j.Failed != 101 || first.Count != 4 || first.Text != "reason 0" ||
		fmt.Sprint(first.Refs) != "[r0 r25 r50 r75]" {
		t.Errorf("%d of %d: %+v", len(j.Failures), j.Failed, first)
	}
	if rest.Reason != job.OtherReasons || rest.Text != "" || rest.Count != 21 ||
		fmt.Sprint(rest.Refs) != "[r20 r21 r22 r23 r24]" {
		t.Errorf("the rest: %+v", rest)
	}
	old := job.Job{}.Fail("a", errors.New("no"))
	one, other := old.Fail("b", errors.New("no")), old.Fail("c", errors.New("no"))
	storetest.Equal(t, fmt.Sprint(one.Failures[0].Refs, other.Failures[0].Refs, old.Failures[0].Count), "[a b] [a c] 1")
}

// The subject of a job comes from its unsealed parameters, has at most 100 characters, and is empty without a kind,
// without About, and for parameters of a deleted key.
func TestAbout(t *testing.T) {
	long := strings.Repeat("ş", 101)
	s := &job.Service{
		Kinds: map[string]job.Kind{
			"letter": {About: func(j job.Job) string { return string(j.Params) }},
			"silent": {},
		},
		Open: func(sealed, ad []byte) ([]byte, error) {
			plain, found := strings.CutPrefix(string(sealed), string(ad)+":")
			if !found {
				return nil, errors.New("unknown key")
			}
			return []byte(plain), nil
		},
	}
	for _, c := range []struct{ kind, params, want string }{
		{"letter", "id:a title", "a title"},
		{"letter", "id:" + long[:200], long[:200]},
		{"letter", "id:" + long, long[:198] + "…"},
		{"letter", "other:a title", ""},
		{"silent", "id:a title", ""},
		{"unknown", "id:a title", ""},
	} {
		storetest.Equal(t, s.About(job.Job{ID: "id", Kind: c.kind, Params: []byte(c.params)}), c.want, c.params, c.kind)
	}
}
