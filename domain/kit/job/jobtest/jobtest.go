// Package jobtest is the suite of job.Store.
package jobtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

// Run runs the suite.
func Run(t *testing.T, open storetest.Open[job.Store]) {
	storetest.Run(t, open, storetest.Cases[job.Store]{
		"RoundTrip":  roundTrip,
		"OneForAKey": oneForAKey,
		"Joins":      joins,
		"Fence":      fence,
		"Due":        due,
		"List":       list,
		"Items":      items,
		"Cancel":     cancel,
		"Resend":     resend,
		"Purge":      purge,
	})
}

var (
	must   = storetest.Must
	now    = time.UnixMilli(1_700_000_000_000).UTC()
	person = audit.By{UserID: "u1"}
)

func service(s job.Store, c commit.Committer) *job.Service {
	return &job.Service{Store: s, Changes: admin.Changes{Commit: c, Now: func() time.Time { return now }},
		Seal: func(plain, ad []byte) []byte { return append([]byte(string(ad)+" "), plain...) }}
}

func start(t *testing.T, s job.Store, c commit.Committer, kind, key string) job.Job {
	t.Helper()
	j, started, err := service(s, c).Start(t.Context(), person, job.Request{Kind: kind, Key: key, Params: 1})
	must(t, err)
	if !started {
		t.Fatalf("%s %s was there", kind, key)
	}
	return j
}

// set saves the job that f returns, with writes.
func set(t *testing.T, s job.Store, c commit.Committer, id string, f func(*job.Job), ws ...commit.Write) job.Job {
	t.Helper()
	j := storetest.Value(s.Get(t.Context(), id))(t)
	f(&j)
	must(t, c.Commit(t.Context(), append(ws, job.Save{Job: j})...))
	return storetest.Value(s.Get(t.Context(), id))(t)
}

func roundTrip(t *testing.T, s job.Store, c commit.Committer) {
	j := start(t, s, c, "k", "")
	if j.Key != j.ID || j.State != job.Queued || j.ActorID != "u1" || string(j.Params) != j.ID+" 1" {
		t.Errorf("%+v", j)
	}
	read := storetest.Value(s.Get(t.Context(), j.ID))(t)
	storetest.Same(t, read, j)
	want := job.Job{ID: j.ID, Kind: "k", Key: j.ID, State: job.Failed, Version: 1, Cancel: true, Cursor: "c", Total: 9,
		Counts: job.Counts{Done: 1, Failed: 2, Unknown: 3, Skipped: 4}, Attempts: 5, NextAt: now.Add(1e6),
		BeatAt: now.Add(2e6), Params: j.Params, Result: "r", Error: "e", ActorID: "u1", CreatedAt: now,
		StartedAt: now.Add(3e6), FinishedAt: now.Add(4e6), Owner: "o",
		Failures: []job.Failure{{Reason: "INVALID_STATE", Text: "it's \"no\"", Count: 2, Refs: []string{"a", "b"}}}}
	got := set(t, s, c, j.ID, func(j *job.Job) { *j = want })
	want.Version = 2
	storetest.Same(t, got, want)
	storetest.Wants(t, storetest.Err(s.Get(t.Context(), "none")), fault.RecordNotFound)
}

func oneForAKey(t *testing.T, s job.Store, c commit.Committer) {
	ids := make([]string, 64)
	var won atomic.Int32
	storetest.Race(t, 64, "", func(i int) error {
		j, started, err := service(s, c).Start(t.Context(), person, job.Request{Kind: "k", Key: "one", Params: i})
		if ids[i] = j.ID; started {
			won.Add(1)
		}
		return err
	})
	storetest.Equal(t, len(slices.Compact(slices.Sorted(slices.Values(ids)))), 1)
	storetest.Equal(t, won.Load(), 1)
	start(t, s, c, "other", "one")
	keys, err := s.Started(t.Context(), "k", []string{"one", "two"})
	must(t, err)
	storetest.Same(t, keys, []string{"one"})
}

// A job exists once the transaction of its caller is committed, and its owner is not notified before.
func joins(t *testing.T, s job.Store, c commit.Committer) {
	var woken []string
	jobs := service(s, c)
	jobs.Wake = func(id string) { woken = append(woken, id) }
	failed := errors.New("no")
	err := c.InTx(t.Context(), func(ctx context.Context) error {
		if _, _, err := jobs.Start(ctx, person, job.Request{Kind: "k", Key: "x"}); err != nil {
			return err
		}
		if again, started, err := jobs.Start(ctx, person, job.Request{Kind: "k", Key: "x"}); started || again.Key != "x" {
			t.Errorf("again: %+v %v", again, err)
		}
		return failed
	})
	all, _ := s.List(t.Context(), job.Query{}, page.Query[job.Place]{})
	storetest.Is(t, err, failed, woken, len(all.Records))
	storetest.Equal(t, len(woken)+len(all.Records), 0, woken, len(all.Records))
	var j job.Job
	must(t, c.InTx(t.Context(), func(ctx context.Context) (err error) {
		j, _, err = jobs.Start(ctx, person, job.Request{Kind: "k", Key: "x"})
		return err
	}))
	storetest.Same(t, woken, []string{j.ID})
}

func fence(t *testing.T, s job.Store, c commit.Committer) {
	j := start(t, s, c, "k", "")
	saved := 0
	for range 2 {
		err := c.Commit(t.Context(), job.Save{Job: j}, job.AddItem{Item: job.Item{JobID: j.ID, N: 1, Ref: "r"}})
		if err == nil {
			saved++
		} else if !errors.Is(err, commit.ErrFenced) {
			t.Error(err)
		}
	}
	storetest.Equal(t, saved, 1)
}

func due(t *testing.T, s job.Store, c commit.Committer) {
	a, b := start(t, s, c, "k", "a"), start(t, s, c, "k", "b")
	later, over := start(t, s, c, "k", "c"), start(t, s, c, "k", "d")
	set(t, s, c, b.ID, func(j *job.Job) { j.NextAt, j.BeatAt = now.Add(-2*time.Minute), now.Add(-2*time.Minute) })
	set(t, s, c, later.ID, func(j *job.Job) { j.NextAt, j.State = now.Add(time.Millisecond), job.Paused })
	set(t, s, c, over.ID, func(j *job.Job) { j.NextAt, j.State = time.Time{}, job.Done })
	ids := storetest.Value(s.Due(t.Context(), now, 9))(t)
	storetest.Same(t, ids, []string{b.ID, a.ID})
	ids = storetest.Value(s.Due(t.Context(), now.Add(time.Millisecond), 1))(t)
	storetest.Same(t, ids, []string{b.ID})
	census := storetest.Value(s.Census(t.Context(), now))(t)
	slices.SortFunc(census, func(a, b job.Census) int { return a.Jobs - b.Jobs })
	storetest.Same(t, census, []job.Census{{Kind: "k", State: job.Paused, Jobs: 1},
		{Kind: "k", State: job.Queued, Jobs: 2, Stuck: 1}})
}

func list(t *testing.T, s job.Store, c commit.Committer) {
	var ids []string
	for i := range 5 {
		j := start(t, s, c, []string{"k", "other"}[i%2], fmt.Sprint(i))
		ids = append(ids, j.ID)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	var got []string
	q := page.Query[job.Place]{Limit: 2, Count: true}
	for {
		p, err := s.List(t.Context(), job.Query{State: job.Queued}, q)
		must(t, err)
		for _, j := range p.Records {
			got = append(got, j.ID)
			mark := j.Mark()
			q.After = &mark
		}
		storetest.Equal(t, p.Total, 5)
		if !p.More {
			break
		}
	}
	storetest.Same(t, got, ids)
	for want, q := range map[int]job.Query{3: {Kind: "k"}, 2: {Kind: "other", State: job.Queued}, 0: {State: job.Done}} {
		p, err := s.List(t.Context(), q, page.Query[job.Place]{})
		if must(t, err); len(p.Records) != want {
			t.Errorf("%+v: %d", q, len(p.Records))
		}
	}
}

// filled is a job with items in the given states, numbered from 1.
func filled(t *testing.T, s job.Store, c commit.Committer, states ...job.ItemState) job.Job {
	t.Helper()
	j := start(t, s, c, "k", "")
	for i, state := range states {
		must(t, c.Commit(t.Context(), job.AddItem{Item: job.Item{JobID: j.ID, N: int64(i + 1), Ref: fmt.Sprint("r", i+1),
			State: state}}))
	}
	return j
}

func items(t *testing.T, s job.Store, c commit.Committer) {
	j := filled(t, s, c, job.ItemDone, job.ItemNew, job.ItemSending, job.ItemNew)
	filled(t, s, c, job.ItemNew)
	read := func(q job.ItemQuery) (ns []int64) {
		t.Helper()
		q.JobID = j.ID
		all := storetest.Value(s.Items(t.Context(), q))(t)
		for _, i := range all {
			ns = append(ns, i.N)
		}
		return ns
	}
	open := []job.ItemState{job.ItemNew, job.ItemSending}
	storetest.Same(t, read(job.ItemQuery{}), []int64{1, 2, 3, 4})
	storetest.Same(t, read(job.ItemQuery{After: 2}), []int64{3, 4})
	storetest.Same(t, read(job.ItemQuery{States: open, Limit: 2}), []int64{2, 3})
	must(t, c.Commit(t.Context(), job.SetItem{Item: job.Item{JobID: j.ID, N: 3, State: job.ItemFailed, Error: "e"}}))
	failed := job.Item{JobID: j.ID, N: 6, Ref: "r6", State: job.ItemFailed, Error: "e6"}
	must(t, c.Commit(t.Context(), job.AddItem{Item: failed}))
	all, err := s.Items(t.Context(), job.ItemQuery{JobID: j.ID, After: 2, States: []job.ItemState{job.ItemFailed}})
	must(t, err)
	storetest.Same(t, all, []job.Item{{JobID: j.ID, N: 3, Ref: "r3", State: job.ItemFailed, Error: "e"}, failed})
	for _, twice := range []job.Item{{JobID: j.ID, N: 4, Ref: "new"}, {JobID: j.ID, N: 5, Ref: "r1"}} {
		storetest.Wants(t, c.Commit(t.Context(), job.AddItem{Item: twice}), fault.RecordAlreadyExist)
	}
}

func cancel(t *testing.T, s job.Store, c commit.Committer) {
	for state, want := range map[job.State]struct {
		state  job.State
		cancel bool
	}{
		job.Queued: {job.Cancelled, false}, job.Paused: {job.Cancelled, false}, job.Running: {job.Running, true},
		job.Done: {job.Done, false}, job.Failed: {job.Failed, false},
	} {
		j := start(t, s, c, "k", string(state))
		set(t, s, c, j.ID, func(j *job.Job) { j.State, j.Total, j.Done = state, 9, 4 })
		for range 2 { // a second call changes nothing
			must(t, service(s, c).Cancel(t.Context(), person, j.ID))
		}
		got := storetest.Value(s.Get(t.Context(), j.ID))(t)
		if got.State != want.state || got.Cancel != want.cancel || got.NextAt.IsZero() != (want.state == job.Cancelled) ||
			want.state == job.Cancelled && (got.Skipped != 5 || !got.FinishedAt.Equal(now)) {
			t.Errorf("%s: %+v", state, got)
		}
	}
	storetest.Wants(t, service(s, c).Cancel(t.Context(), person, "none"), fault.RecordNotFound)
}

func resend(t *testing.T, s job.Store, c commit.Committer) {
	j := filled(t, s, c, job.ItemUnknown, job.ItemDone, job.ItemUnknown, job.ItemFailed)
	storetest.Wants(t, service(s, c).Resend(t.Context(), person, j.ID), fault.InvalidState)
	set(t, s, c, j.ID, func(j *job.Job) {
		j.State, j.NextAt, j.FinishedAt, j.Cursor, j.Unknown = job.Done, time.Time{}, now, "4", 2
	})
	won := storetest.Race(t, 4, fault.InvalidState, func(int) error {
		return service(s, c).Resend(t.Context(), person, j.ID)
	})
	got, err := s.Get(t.Context(), j.ID)
	must(t, err)
	if won != 1 || got.State != job.Queued || !got.NextAt.Equal(now) || got.Unknown != 0 || got.Cursor != "0" {
		t.Errorf("%d won, %+v", won, got)
	}
	fresh, err := s.Items(t.Context(), job.ItemQuery{JobID: j.ID, States: []job.ItemState{job.ItemNew}})
	if must(t, err); len(fresh) != 2 || fresh[0].N != 1 || fresh[1].N != 3 {
		t.Errorf("%+v", fresh)
	}
	set(t, s, c, j.ID, func(j *job.Job) { j.State, j.Cursor, j.Error = job.Failed, "3", "e" })
	must(t, service(s, c).Resend(t.Context(), person, j.ID))
	if got, err = s.Get(t.Context(), j.ID); err != nil || got.State != job.Queued || got.Cursor != "3" || got.Error != "" {
		t.Errorf("%v %+v", err, got)
	}
	for _, over := range []job.State{job.Cancelled, job.Done} { // the items of the second have a known outcome
		set(t, s, c, j.ID, func(j *job.Job) { j.State = over })
		storetest.Wants(t, service(s, c).Resend(t.Context(), person, j.ID), fault.InvalidState)
		if got, err = s.Get(t.Context(), j.ID); err != nil || got.State != over {
			t.Errorf("%v %+v", err, got)
		}
	}
}

func purge(t *testing.T, s job.Store, c commit.Committer) {
	states := make([]job.ItemState, 300) // more than one call removes
	old, alive := filled(t, s, c, states...), filled(t, s, c, job.ItemNew)
	set(t, s, c, old.ID, func(j *job.Job) { j.State, j.NextAt = job.Done, time.Time{} })
	must(t, s.Purge(t.Context(), now))
	must(t, s.Purge(t.Context(), now.Add(time.Millisecond)))
	_, err := s.Get(t.Context(), old.ID)
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = s.Get(t.Context(), alive.ID)
	must(t, err)
	for of, want := range map[string]int{old.ID: 0, alive.ID: 1} {
		left, err := s.Items(t.Context(), job.ItemQuery{JobID: of})
		if must(t, err); len(left) != want {
			t.Errorf("%d items are left, want %d", len(left), want)
		}
	}
	if id.Before(now) > old.ID {
		t.Error("the id does not begin with its instant")
	}
}
