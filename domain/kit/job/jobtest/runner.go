package jobtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
)

// RunRunner tests a job.Runner on a store.
func RunRunner(t *testing.T, open storetest.Open[job.Store]) {
	storetest.Run(t, open, storetest.Cases[job.Store]{
		"Steps":                steps,
		"StepIsRedone":         stepIsRedone,
		"FailsWithTheFifth":    failsWithTheFifth,
		"WritesAreRefused":     writesAreRefused,
		"ItemsFailAlone":       itemsFailAlone,
		"AtMostOnce":           atMostOnce,
		"RepeatableIsRepeated": repeatable,
		"Later":                later,
		"Pace":                 pace,
		"CancelOfAWindow":      cancelOfAWindow,
		"CancelBreaksAStep":    cancelBreaksAStep,
		"Leaving":              leaving,
		"Lease":                lease,
		"Slots":                slots,
		"IdleSchedules":        idle,
	})
}

// effect is the write of a step, which may exist only once: an item of the job itself.
func effect(j job.Job, n int) commit.Write {
	return job.AddItem{Item: job.Item{JobID: j.ID, N: int64(n), Ref: fmt.Sprint(n)}}
}

// three is a kind of three steps with one effect each.
func three(called *int) job.Kind {
	return job.Kind{Name: "three", Step: func(_ context.Context, j job.Job) (job.Job, []commit.Write, error) {
		*called++
		var p struct{ N int }
		if err := j.Into(&p); err != nil || p.N != 7 {
			return j, nil, fmt.Errorf("parameters %+v: %w", p, err)
		}
		n := len(j.Cursor) + 1
		j.Cursor, j.Total, j.Done = strings.Repeat("x", n), 3, int64(n)
		if n == 3 {
			j = j.Finish("the result")
		}
		return j, []commit.Write{effect(j, n)}, nil
	}}
}

func steps(t *testing.T, s job.Store, c commit.Committer) {
	called := 0
	w := worldOf(t, s, c, three(&called))
	id, r := w.start("three"), w.runner("a")
	if j := w.step(r, id); j.State != job.Running || j.Done != 1 || !j.StartedAt.Equal(w.now) || j.Owner != "a" {
		t.Errorf("%+v", j)
	}
	w.now = w.now.Add(time.Hour)
	j := w.run(r, id)
	if j.State != job.Done || j.Result != "the result" || j.Done != 3 || !j.NextAt.IsZero() || !j.FinishedAt.Equal(w.now) {
		t.Errorf("%+v", j)
	}
	if w.step(r, id); called != 3 {
		t.Errorf("%d steps", called)
	}
	if _, over, err := r.Step(t.Context(), "none"); !over || fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("a job that is not there: %v, %v", over, err)
	}
	other := w.start("newer")
	if _, over, err := r.Step(t.Context(), other); over || err == nil || w.get(other).Attempts != 0 {
		t.Errorf("a kind of a newer version: %v, %v", over, err)
	}
}

// Wherever a process is killed, each step takes effect exactly once.
func stepIsRedone(t *testing.T, s job.Store, c commit.Committer) {
	for n := 1; n <= 3; n++ {
		for _, after := range []bool{false, true} {
			called := 0
			w := worldOf(t, s, c, three(&called))
			id, dying := w.start("three"), w.runner("a")
			dying.Commit = &killed{Committer: c, left: n, after: after}
			for range 3 {
				dying.Step(t.Context(), id)
			}
			j := w.run(w.runner("b"), id)
			items, err := s.Items(t.Context(), job.ItemQuery{JobID: id})
			if must(t, err); j.State != job.Done || j.Attempts != 0 || len(items) != 3 {
				t.Errorf("killed at commit %d: %+v, %d effects", n, j, len(items))
			}
		}
	}
}

func failsWithTheFifth(t *testing.T, s job.Store, c commit.Committer) {
	const secret = "a secret of the panic"
	for name, k := range map[string]struct {
		fail func() error
		want string
	}{
		"panic":   {func() error { panic(secret) }, "internal error; see the log of the service"},
		"error":   {func() error { return errors.New(secret) }, "internal error; see the log of the service"},
		"refusal": {func() error { return fault.New(fault.InvalidState, "the day is closed") }, "the day is closed"},
	} {
		called := 0
		w := worldOf(t, s, c, job.Kind{Name: "k", Step: func(_ context.Context, j job.Job) (job.Job, []commit.Write, error) {
			called++
			return j.Finish(""), []commit.Write{effect(j, 1)}, k.fail()
		}})
		id, r := w.start("k"), w.runner("a")
		if j := w.step(r, id); j.State != job.Paused || j.Attempts != 1 || !j.NextAt.Equal(w.now.Add(time.Second)) {
			t.Errorf("%s: %+v", name, j)
		}
		j := w.run(r, id)
		if j.State != job.Failed || j.Error != k.want || called != 5 || w.now.Sub(now) != 85*time.Second {
			t.Errorf("%s: %d calls in %s: %+v", name, called, w.now.Sub(now), j)
		}
		if items, _ := s.Items(t.Context(), job.ItemQuery{JobID: id}); len(items) != 0 {
			t.Errorf("%s: %d effects of failed steps", name, len(items))
		}
		storetest.Equal(t, strings.Contains(w.log.String(), "jobtest.failsWithTheFifth"), (name == "panic"), name)
	}
}

// Writes that the database rejects fail the attempt and not the node.
func writesAreRefused(t *testing.T, s job.Store, c commit.Committer) {
	writes := []commit.Write{}
	step := job.Kind{Name: "k", Step: func(_ context.Context, j job.Job) (job.Job, []commit.Write, error) {
		return j.Finish(""), writes, nil
	}}
	w := worldOf(t, s, c, step)
	w.kinds["items"] = job.Kind{Name: "items", Items: &job.Items{Effect: job.Repeatable, Snapshot: refs(1),
		Send: func(context.Context, job.Job, string) ([]commit.Write, error) { return writes, nil }}}
	other := w.get(w.start("k"))
	for name, write := range map[string]commit.Write{
		"twice":  job.AddItem{Item: job.Item{JobID: other.ID, N: 1, Ref: "r"}},
		"fenced": job.Save{Job: job.Job{ID: other.ID, Version: 99}},
	} {
		if name == "twice" {
			must(t, c.Commit(t.Context(), write))
		}
		for _, kind := range []string{"k", "items"} {
			writes = nil
			id := w.start(kind)
			if kind == "items" {
				w.step(w.runner("a"), id)
			}
			writes = []commit.Write{write}
			storetest.Equal(t, w.run(w.runner("a"), id).State, job.Failed, name, kind)
		}
	}
}

func itemsFailAlone(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	wrong := map[string]func() error{
		"r00001": func() error { return errors.New("secret") },
		"r00002": func() error { return fault.New(fault.InvalidState, "no such inbox") },
		"r00003": func() error { return job.Skip },
		"r00004": func() error { return job.Unsure(errors.New("secret")) },
		"r00005": func() error { panic("secret") },
	}
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(550, func(ref string) error {
		if f := wrong[ref]; f != nil {
			return f()
		}
		return nil
	})}
	w.kinds["k"].Items.Parallel = 4
	id := w.start("k")
	if j := w.step(w.runner("a"), id); j.Total != 500 || len(w.sent) != 0 {
		t.Errorf("after a page of recipients %+v", j)
	}
	storetest.Equal(t, w.run(w.runner("a"), id).State, job.Done)
	w.wantsCounts(id, 550, job.Counts{Done: 545, Failed: 2, Unknown: 2, Skipped: 1})
	storetest.Same(t, w.get(id).Failures, []job.Failure{
		{Reason: "INTERNAL", Text: "internal error; see the log of the service", Count: 1, Refs: []string{"r00001"}},
		{Reason: "INVALID_STATE", Text: "no such inbox", Count: 1, Refs: []string{"r00002"}}})
	items := storetest.Value(s.Items(t.Context(), job.ItemQuery{JobID: id, After: 1, Limit: 2}))(t)
	storetest.Equal(t, items[0].Error, "internal error; see the log of the service", items)
	storetest.Equal(t, items[1].Error, "no such inbox", items)
}

// Wherever the process is killed, nothing is sent twice and at most one window is unknown; a user resends it.
func atMostOnce(t *testing.T, s job.Store, c commit.Committer) {
	for n := 1; n <= 7; n++ { // recipients, then marks and outcomes of three windows
		for _, after := range []bool{false, true} {
			w := worldOf(t, s, c)
			w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(50, nil)}
			id, dying := w.start("k"), w.runner("a")
			dying.Commit = &killed{Committer: c, left: n, after: after}
			for range 4 {
				dying.Step(t.Context(), id)
			}
			j := w.run(w.runner("b"), id)
			unknown := j.Unknown
			w.wantsCounts(id, 50, job.Counts{Done: 50 - unknown, Unknown: unknown})
			if cut := n%2 == 0 && after || n%2 == 1 && n > 1 && !after; cut != (unknown > 0) || unknown > job.Window {
				t.Errorf("killed at commit %d, after it %v: %d are unknown", n, after, unknown)
			}
			w.sent = map[string]int{}
			if unknown > 0 {
				must(t, w.service().Resend(t.Context(), person, id))
				w.run(w.runner("b"), id)
			}
			w.wantsCounts(id, 50, job.Counts{Done: 50})
			storetest.Equal(t, len(w.sent), int(unknown), unknown)
		}
	}
}

func repeatable(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(30, nil)}
	w.kinds["k"].Items.Effect = job.Repeatable
	id, dying := w.start("k"), w.runner("a")
	dying.Commit = &killed{Committer: c, left: 2}
	for range 2 {
		dying.Step(t.Context(), id)
	}
	w.sent = map[string]int{}
	w.run(w.runner("b"), id)
	w.wantsCounts(id, 30, job.Counts{Done: 30})
}

// An unreachable server fails no item: the job waits, and fails in the end. A single item that cannot be sent does not
// delay the others.
func later(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	away := func(ref string) bool { return true }
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(45, func(ref string) error {
		if away(ref) {
			return job.Later(fault.New(fault.Unavailable, "the mail server is away"))
		}
		return nil
	})}
	id, r := w.start("k"), w.runner("a")
	j := w.run(r, id)
	if j.State != job.Failed || j.Error != "the mail server is away" || w.now.Sub(now) != 85*time.Second {
		t.Errorf("%s later: %+v", w.now.Sub(now), j)
	}
	w.wantsCounts(id, 45, job.Counts{})
	away = func(ref string) bool { return ref == "r00003" }
	must(t, w.service().Resend(t.Context(), person, id))
	storetest.Equal(t, w.run(r, id).State, job.Done)
	w.wantsCounts(id, 45, job.Counts{Done: 44, Failed: 1})
}

func pace(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(100, nil)}
	w.kinds["k"].Items.Group, w.kinds["k"].Items.Pause = 30, 500*time.Millisecond
	id, r := w.start("k"), w.runner("a")
	at := map[time.Duration]int{}
	for over := false; !over; {
		var due time.Time
		var err error
		due, over, err = r.Step(t.Context(), id)
		must(t, err)
		if at[w.now.Sub(now)] = len(w.sent); due.After(w.now) {
			if j := w.get(id); j.State != job.Paused || !j.NextAt.Equal(due) {
				t.Errorf("%+v", j)
			}
			w.now = due
		}
	}
	storetest.Same(t, at, map[time.Duration]int{0: 30, 5e8: 60, 1e9: 90, 15e8: 100})
	w.wantsCounts(id, 100, job.Counts{Done: 100})
}

// A cancel during a window ends the job after it, and the sent items are counted.
func cancelOfAWindow(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	var id string
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(50, func(ref string) error {
		if ref == "r00025" {
			return w.service().Cancel(t.Context(), person, id)
		}
		return nil
	})}
	id = w.start("k")
	if j := w.run(w.runner("a"), id); j.State != job.Cancelled || j.Cancel || j.FinishedAt.IsZero() {
		t.Errorf("%+v", j)
	}
	w.wantsCounts(id, 50, job.Counts{Done: 40, Skipped: 10})
	storetest.Wants(t, w.service().Resend(t.Context(), person, id), fault.InvalidState, "sent again")
	// If the owner was killed in the window, the next one ends the job.
	id = w.start("k")
	dying := w.runner("a")
	dying.Commit = &killed{Committer: c, left: 5}
	for range 3 {
		dying.Step(t.Context(), id)
	}
	want := job.Counts{Done: 20, Unknown: 20, Skipped: 10}
	if j := w.run(w.runner("b"), id); j.State != job.Cancelled || j.Counts != want {
		t.Errorf("%+v", j)
	}
}

// A cancel interrupts a long step within one polling interval.
func cancelBreaksAStep(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	begun := make(chan struct{}, 9)
	w.kinds["k"] = job.Kind{Name: "k", Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		if j.Cursor == "" {
			j.Cursor = "x"
			return j, nil, nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		return j.Finish(""), []commit.Write{effect(j, 1)}, ctx.Err()
	}}
	id, r := w.start("k"), w.runner("a")
	w.step(r, id)
	ended := make(chan job.Job)
	go func() { ended <- w.run(r, id) }()
	<-begun
	storetest.Equal(t, r.Busy(id), true, "no step is under way")
	asked := time.Now()
	must(t, w.service().Cancel(t.Context(), person, id))
	if j := <-ended; j.State != job.Cancelled || j.Attempts != 0 || time.Since(asked) > 2*time.Second {
		t.Errorf("after %s: %+v", time.Since(asked), j)
	}
}

// A node that shuts down finishes the items it is sending, and starts nothing.
func leaving(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(50, func(ref string) error {
		if ref == "r00024" {
			w.leave()
		}
		return nil
	})}
	id, r := w.start("k"), w.runner("a")
	for range 9 {
		w.step(r, id)
	}
	r.Wait(t.Context())
	if j := w.get(id); j.State != job.Running || j.Done != 25 || j.Attempts != 0 {
		t.Errorf("%+v", j)
	}
	w.leaves = t.Context()
	w.run(w.runner("b"), id)
	w.wantsCounts(id, 50, job.Counts{Done: 50})
}

// Outside of a cluster, a job is left alone while another process may be working on it.
func lease(t *testing.T, s job.Store, c commit.Committer) {
	w := worldOf(t, s, c)
	w.kinds["k"] = job.Kind{Name: "k", Items: w.mailing(30, nil)}
	id, dying, other := w.start("k"), w.runner("a"), w.runner("b")
	dying.Commit = &killed{Committer: c, left: 3}
	for range 2 {
		dying.Step(t.Context(), id)
	}
	other.Unclustered = true
	due, _, err := other.Step(t.Context(), id)
	if must(t, err); !due.Equal(w.now.Add(job.Lease)) || w.get(id).Unknown != 0 {
		t.Errorf("due in %s: %+v", due.Sub(w.now), w.get(id))
	}
	w.run(other, id)
	w.wantsCounts(id, 30, job.Counts{Done: 10, Unknown: 20})
}
