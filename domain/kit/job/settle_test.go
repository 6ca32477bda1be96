package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
)

var (
	errAway = fault.New(fault.Unavailable, "the database is away")
	errDown = errors.New("the database is down")
)

// disk holds one job in memory. Its commits take effect as the test says.
type disk struct {
	job.Store
	commit.Committer
	job     job.Job
	get     error
	commits int
	on      func(n int, next job.Job) error // the answer to the nth commit; nil: all are saved
	log     strings.Builder
	stepDue time.Time // when step wants the next step; zero: at any time
}

func (d *disk) Get(context.Context, string) (job.Job, error) { return d.job, d.get }

func (d *disk) Commit(_ context.Context, ws ...commit.Write) error {
	for _, w := range ws {
		if s, is := w.(job.Save); is {
			d.commits++
			if d.on != nil {
				return d.on(d.commits, s.Job)
			}
			d.save(s.Job)
		}
	}
	return nil
}

// save makes a job the stored one, as the database does.
func (d *disk) save(next job.Job) {
	next.Version++
	d.job = next
}

// step runs one step of the job, which settles one of two units.
func (d *disk) step(t *testing.T) (over bool, err error) {
	t.Helper()
	due, over, err := d.runner(t, job.Kind{Name: "half", Step: half}).Step(t.Context(), "j1")
	if want := d.stepDue; !want.IsZero() && !due.Equal(want) {
		t.Errorf("the next step is due in %s", time.Until(due))
	}
	return over, err
}

func half(_ context.Context, j job.Job) (job.Job, []commit.Write, error) {
	j.Cursor, j.Total = "1", 2
	j.Done++
	return j, nil, nil
}

// runner returns the runner of this process, with one kind.
func (d *disk) runner(t *testing.T, k job.Kind) *job.Runner {
	return &job.Runner{Store: d, Commit: d, Kinds: map[string]job.Kind{k.Name: k}, Name: "here", Now: time.Now,
		Open:    func(sealed, _ []byte) ([]byte, error) { return sealed, nil },
		Leaving: t.Context(), Log: slog.New(slog.NewTextHandler(&d.log, nil))}
}

func newDisk() *disk {
	return &disk{job: job.Job{ID: "j1", Kind: "half", State: job.Queued, Version: 7,
		NextAt: time.Now().Add(-time.Minute)}}
}

// The outcome of a step is saved once, whatever the database answers. Only the row shows if a commit without an answer
// took effect.
func TestOutcomeIsSavedOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		on      func(d *disk, n int, next job.Job) error
		commits int
		want    string // the row afterwards: state, done units, failed attempts
		err     error
		took    time.Duration
	}{
		{"an answer is lost", func(d *disk, _ int, next job.Job) error {
			d.save(next)
			return errAway
		}, 1, "running 1 0", nil, 500 * time.Millisecond},
		{"a commit is lost", func(d *disk, n int, next job.Job) error {
			if n == 1 {
				return errAway
			}
			d.save(next)
			return nil
		}, 2, "running 1 0", nil, 500 * time.Millisecond},
		{"the row cannot be read", func(d *disk, n int, next job.Job) error {
			if d.get = errDown; n < 3 {
				return errAway
			}
			d.save(next)
			return nil
		}, 3, "running 1 0", nil, time.Second},
		// The last try may come as the time ends.
		{"the database stays away", func(*disk, int, job.Job) error { return errAway }, 20, "queued 0 0", errAway,
			10 * time.Second},
		{"another row was changed", func(d *disk, n int, next job.Job) error {
			if n == 1 {
				return commit.ErrFenced
			}
			d.save(next)
			return nil
		}, 2, "paused 0 1", nil, 0},
		{"fenced without a row", func(d *disk, _ int, next job.Job) error {
			d.get = errDown
			return commit.ErrFenced
		}, 1, "queued 0 0", nil, 0},
		{"cancelled meanwhile", func(d *disk, n int, next job.Job) error {
			if n == 1 {
				d.job.Cancel = true
				d.job.Version++
				return commit.ErrFenced
			}
			d.save(next)
			return nil
		}, 2, "cancelled 1 0", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				d.on = func(n int, next job.Job) error { return c.on(d, n, next) }
				begin := time.Now()
				if c.name == "fenced without a row" { // it is read again at once
					d.stepDue = begin
				}
				over, err := d.step(t)
				got := fmt.Sprint(d.job.State, " ", d.job.Done, " ", d.job.Attempts)
				if !errors.Is(err, c.err) || over != (d.job.State == job.Cancelled) || got != c.want ||
					min(d.commits, 20) != c.commits || time.Since(begin) != c.took {
					t.Errorf("%s, %v after %d commits and %s", got, err, d.commits, time.Since(begin))
				}
			})
		})
	}
}

// A row that differs in any way from the saved one has another owner, whose step counts.
func TestOtherOwnerWins(t *testing.T) {
	for name, change := range map[string]func(*job.Job){
		"owner": func(j *job.Job) { j.Owner = "there" }, "counts": func(j *job.Job) { j.Failed++ },
		"cursor": func(j *job.Job) { j.Cursor = "2" }, "version": func(j *job.Job) { j.Version++ },
		"time": func(j *job.Job) { j.BeatAt = j.BeatAt.Add(time.Millisecond) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk()
			var theirs job.Job
			d.on = func(_ int, next job.Job) error {
				change(&next)
				d.save(next)
				theirs = d.job
				return errAway
			}
			over, err := d.step(t)
			if over || err != nil || d.commits != 1 || d.job.Owner != theirs.Owner || d.job.Version != theirs.Version {
				t.Errorf("%s: %v, %v after %d commits", name, over, err, d.commits)
			}
		})
	}
}

// A job whose parameters cannot be unsealed, or whose cursor is no number, fails an attempt. Clients do not see the
// error itself.
func TestUnreadableJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		items := &job.Items{Send: func(context.Context, job.Job, string) ([]commit.Write, error) {
			sent++
			return nil, nil
		}}
		for name, open := range map[string]error{"cursor": nil, "parameters": errDown} {
			d := newDisk()
			d.job.Kind, d.job.Cursor = "mail", "x"
			r := d.runner(t, job.Kind{Name: "mail", Items: items})
			r.Open = func(sealed, _ []byte) ([]byte, error) { return sealed, open }
			due, over, err := r.Step(t.Context(), "j1")
			if err != nil || over || sent > 0 || d.job.Attempts != 1 || d.job.State != job.Paused ||
				d.job.Error != "internal error; see the log of the service" || !due.Equal(time.Now().Add(time.Second)) ||
				!strings.Contains(d.log.String(), "a step of a job failed") {
				t.Errorf("%s: %v, %+v, %s", name, err, d.job, &d.log)
			}
		}
	})
}

// A cancel ends a job of many recipients while they are recorded, and one whose attempt fails.
func TestCancelEndsFailingJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name, cursor string
			before       bool // cancelled before the step; otherwise during it
			attempts     int
			asked        int // for recipients
		}{{"recorded", "", true, 0, 0}, {"failing", "", false, 1, 1}} {
			d, asked := newDisk(), 0
			d.job.Kind, d.job.State, d.job.Cursor, d.job.Cancel = "mail", job.Running, c.cursor, c.before
			items := &job.Items{Snapshot: func(context.Context, job.Job, string, int) ([]string, error) {
				asked++
				return nil, errDown
			}}
			d.on = func(n int, next job.Job) error {
				if n == 1 && !c.before {
					d.job.Cancel = true
					d.job.Version++
					return commit.ErrFenced
				}
				d.save(next)
				return nil
			}
			r := d.runner(t, job.Kind{Name: "mail", Items: items})
			_, over, err := r.Step(t.Context(), "j1")
			if err != nil || !over || d.job.State != job.Cancelled || d.job.Attempts != c.attempts || asked != c.asked ||
				!d.job.FinishedAt.Equal(time.Now()) || !d.job.NextAt.IsZero() {
				t.Errorf("%s: %v, asked %d times, %+v", c.name, err, asked, d.job)
			}
		}
	})
}

// A job is busy here as long as one of its steps runs. A node that leaves interrupts the steps, which count as no
// attempt, and begins none. Waiting for them ends with its context.
func TestBusyUntilTheLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, end := newDisk(), make(chan struct{})
		r := d.runner(t, job.Kind{Name: "half", Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
			select {
			case <-end:
				return half(ctx, j)
			case <-ctx.Done():
				return j, nil, ctx.Err()
			}
		}})
		leaving, leave := context.WithCancel(t.Context())
		r.Leaving = leaving
		var steps sync.WaitGroup
		for range 2 {
			steps.Go(func() {
				if due, over, err := r.Step(t.Context(), "j1"); over || err != nil || due.After(time.Now()) {
					t.Errorf("%s, %v, %v", due, over, err)
				}
			})
		}
		synctest.Wait()
		end <- struct{}{}
		synctest.Wait()
		if !r.Busy("j1") || r.Busy("j2") || d.commits != 1 {
			t.Errorf("busy %v and %v after %d commits", r.Busy("j1"), r.Busy("j2"), d.commits)
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if r.Wait(short); time.Since(begin) != 100*time.Millisecond {
			t.Errorf("waited for %s", time.Since(begin))
		}
		leave()
		r.Wait(t.Context())
		steps.Wait()
		if r.Busy("j1") || d.commits != 1 || d.job.Attempts != 0 {
			t.Errorf("busy %v after %d commits, %d attempts", r.Busy("j1"), d.commits, d.job.Attempts)
		}
		due, over, err := r.Step(t.Context(), "j1")
		if over || err != nil || !due.Equal(time.Now().Add(15*time.Second)) || d.commits != 1 {
			t.Errorf("a step of a node that left: %s, %v, %v", due, over, err)
		}
	})
}

// page is a disk with items that are not sent yet.
type page struct {
	*disk
	refs  int
	limit int
}

func (p *page) Items(_ context.Context, q job.ItemQuery) (all []job.Item, _ error) {
	p.limit = q.Limit
	for n := q.After + 1; n <= int64(p.refs) && len(all) < q.Limit; n++ {
		all = append(all, job.Item{JobID: q.JobID, N: n, Ref: fmt.Sprint("r", n)})
	}
	return all, p.get
}

// A step has a minute and an item ten seconds. After a second no other item of the twenty of a window is sent before
// the outcomes are saved.
func TestTimesOfSteps(t *testing.T) {
	for each, want := range map[time.Duration]int64{0: 20, 500 * time.Millisecond: 3, 501 * time.Millisecond: 2} {
		synctest.Test(t, func(t *testing.T) {
			left := func(ctx context.Context) time.Duration {
				end, _ := ctx.Deadline()
				return time.Until(end)
			}
			p := &page{disk: newDisk(), refs: 25}
			items := &job.Items{Effect: job.Repeatable, Snapshot: func(ctx context.Context, _ job.Job, _ string,
				limit int) ([]string, error) {
				storetest.Equal(t, left(ctx), time.Minute)
				storetest.Equal(t, limit, 500)
				return []string{"r1", "r2"}, nil
			}, Send: func(ctx context.Context, _ job.Job, _ string) ([]commit.Write, error) {
				storetest.Equal(t, left(ctx), 10*time.Second)
				time.Sleep(each)
				return nil, nil
			}}
			r := p.runner(t, job.Kind{Name: "half", Items: items})
			r.Store = p
			for range 2 { // the recipients, and the first window
				if _, _, err := r.Step(t.Context(), "j1"); err != nil {
					t.Fatal(err)
				}
			}
			if p.job.Done != want || p.job.Cursor != fmt.Sprint(want) || p.job.Total != 2 || p.limit != 20 {
				t.Errorf("%s each: %+v, %d asked for", each, p.job, p.limit)
			}
		})
	}
}

// Items that cannot be read leave the job as it is.
func TestItemsCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &unread{disk: newDisk()}
		p.job.Cursor = "0"
		r := p.runner(t, job.Kind{Name: "half", Items: &job.Items{}})
		r.Store = p
		if _, over, err := r.Step(t.Context(), "j1"); !errors.Is(err, errDown) || over || p.commits != 0 {
			t.Errorf("%v, %v after %d commits", over, err, p.commits)
		}
	})
}

// unread is a disk whose items cannot be read.
type unread struct{ *disk }

func (unread) Items(context.Context, job.ItemQuery) ([]job.Item, error) { return nil, errDown }
