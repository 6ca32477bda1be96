package jobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
)

// world is a store with its runners, under a clock that the test moves.
type world struct {
	*testing.T
	job.Store
	commit.Committer
	now    time.Time
	kinds  map[string]job.Kind
	leave  context.CancelFunc
	leaves context.Context
	log    bytes.Buffer

	mu   sync.Mutex
	sent map[string]int // how often each ref was sent
}

func worldOf(t *testing.T, s job.Store, c commit.Committer, kinds ...job.Kind) *world {
	w := &world{T: t, Store: s, Committer: c, now: now, kinds: map[string]job.Kind{}, sent: map[string]int{}}
	w.leaves, w.leave = context.WithCancel(t.Context())
	for _, k := range kinds {
		w.kinds[k.Name] = k
	}
	return w
}

func (w *world) service() *job.Service {
	return &job.Service{Store: w.Store, Changes: admin.Changes{Commit: w, Now: func() time.Time { return w.now }},
		Seal: func(plain, ad []byte) []byte { return append(slices.Clone(ad), plain...) }}
}

// runner returns a runner; each name is another process.
func (w *world) runner(name string) *job.Runner {
	return &job.Runner{Store: w.Store, Commit: w, Kinds: w.kinds, Name: name, Leaving: w.leaves,
		Open: func(sealed, ad []byte) ([]byte, error) {
			plain, mine := bytes.CutPrefix(sealed, ad)
			if !mine {
				return nil, errors.New("sealed for another job")
			}
			return plain, nil
		},
		Now: func() time.Time { return w.now }, Log: slog.New(slog.NewTextHandler(&w.log, nil))}
}

func (w *world) start(kind string) string {
	w.Helper()
	j, _, err := w.service().Start(w.Context(), person, job.Request{Kind: kind, Params: map[string]int{"n": 7}})
	must(w, err)
	return j.ID
}

func (w *world) get(id string) job.Job {
	w.Helper()
	return storetest.Value(w.Store.Get(w.Context(), id))(w)
}

// step takes one step and returns the job after it.
func (w *world) step(r *job.Runner, id string) job.Job {
	w.Helper()
	_, _, err := r.Step(w.Context(), id)
	must(w, err)
	return w.get(id)
}

// run takes steps until the job is over and moves the clock to the next step each time.
func (w *world) run(r *job.Runner, id string) job.Job {
	w.Helper()
	for range 1000 {
		due, over, err := r.Step(w.Context(), id)
		must(w, err)
		if over {
			return w.get(id)
		}
		if due.After(w.now) {
			w.now = due
		}
	}
	w.Fatalf("it does not end: %+v", w.get(id))
	return job.Job{}
}

// refs lists n recipients.
func refs(n int) func(context.Context, job.Job, string, int) ([]string, error) {
	return func(_ context.Context, _ job.Job, after string, limit int) (page []string, _ error) {
		for i := range n {
			if ref := fmt.Sprintf("r%05d", i); ref > after && len(page) < limit {
				page = append(page, ref)
			}
		}
		return page, nil
	}
}

// mailing sends to n recipients and counts the sent items; send, if set, fails.
func (w *world) mailing(n int, send func(ref string) error) *job.Items {
	return &job.Items{Snapshot: refs(n), Send: func(_ context.Context, _ job.Job, ref string) ([]commit.Write, error) {
		if send != nil {
			if err := send(ref); err != nil {
				return nil, err
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent[ref]++
		return nil, nil
	}}
}

// wantsCounts checks the outcomes of the items, in the job and in their rows.
func (w *world) wantsCounts(id string, total int64, want job.Counts) {
	w.Helper()
	j := w.get(id)
	storetest.Same(w, [2]any{j.Total, j.Counts}, [2]any{total, want})
	all := storetest.Value(w.Store.Items(w.Context(), job.ItemQuery{JobID: id}))(w)
	rows := map[job.ItemState]int64{}
	for _, i := range all {
		rows[i.State]++
	}
	got := job.Counts{Done: rows[job.ItemDone], Failed: rows[job.ItemFailed], Unknown: rows[job.ItemUnknown],
		Skipped: rows[job.ItemSkipped]}
	if int64(len(all)) != total || j.State == job.Done && got != want {
		w.Errorf("%d rows: %+v, want %d: %+v", len(all), got, total, want)
	}
	for ref, n := range w.sent {
		storetest.Equal(w, n, 1, ref)
	}
}

// killed is a committer of a process that is killed: before its n-th commit, or right after it, when no caller learns
// of it.
type killed struct {
	commit.Committer
	left  int
	after bool
	dead  bool
}

var errKilled = errors.New("killed")

func (k *killed) Commit(ctx context.Context, ws ...commit.Write) error {
	k.left--
	if k.dead || k.left == 0 {
		if k.after && !k.dead {
			k.Committer.Commit(ctx, ws...)
		}
		k.dead = true
		return errKilled
	}
	return k.Committer.Commit(ctx, ws...)
}

// Finish runs a job to its end and returns it with its items. pause receives the instant until which the job pauses and
// moves the clock of the runner.
func Finish(t *testing.T, r *job.Runner, id string, pause func(until time.Time)) (job.Job, []job.Item) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for over := false; !over; {
		due, ended, err := r.Step(ctx, id)
		storetest.Must(t, err)
		if over = ended; !over {
			pause(due)
		}
	}
	end := storetest.Value(r.Store.Get(ctx, id))(t)
	items := storetest.Value(r.Store.Items(ctx, job.ItemQuery{JobID: id}))(t)
	return end, items
}
