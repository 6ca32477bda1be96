package jobtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
)

// member is a node as seen by schedules: a clock, its state, and a time during which it is down.
type member struct {
	skew      time.Duration
	runner    *job.Runner
	scheduler *job.Scheduler
	back      time.Time
}

// slots lets three nodes run a schedule of five minutes for 24 hours. Their clocks differ by up to 2 s, 20 commits are
// killed in the middle, and a network split lasts four hours. Every node runs every job it finds, as if it were the
// owner.
func slots(t *testing.T, s job.Store, c commit.Committer) {
	const period, hours, kills, away = 5 * time.Minute, 24, 20, 3 * time.Minute
	w := worldOf(t, s, c)
	ledger := w.start("ledger") // its items are the effects: one for each slot
	begin := now.Truncate(period)
	late := map[string]time.Duration{}
	w.kinds["fetch"] = job.Kind{Name: "fetch", Step: func(_ context.Context, j job.Job) (job.Job, []commit.Write, error) {
		slot, err := j.Slot()
		if !slot.Before(begin) { // Back starts one from before
			late[j.Key] = w.now.Sub(slot)
		}
		return j.Finish(""), []commit.Write{job.AddItem{Item: job.Item{JobID: ledger, N: int64(slot.Sub(begin)/period) + 1,
			Ref: j.Key}}}, err
	}}
	random := rand.New(rand.NewPCG(1, 2))
	boot := func(skew time.Duration) *member {
		clock := func() time.Time { return w.now.Add(skew) }
		r := w.runner("n")
		r.Now = clock
		service := *w.service()
		service.Changes = admin.Changes{Commit: w, Now: clock}
		return &member{skew: skew, runner: r, scheduler: &job.Scheduler{Service: &service,
			Schedules: []job.Schedule{{Kind: "fetch", Every: period, Back: 1}}}}
	}
	nodes := []*member{boot(-2 * time.Second), boot(0), boot(2 * time.Second)}
	turn := func(n *member) {
		must(t, n.scheduler.Tick(t.Context()))
		ids, err := s.Due(t.Context(), w.now.Add(n.skew), 10)
		must(t, err)
		for _, id := range ids {
			if id == ledger {
				continue
			}
			if _, _, err := n.runner.Step(t.Context(), id); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
	}
	end := begin.Add(hours * time.Hour)
	for w.now = begin.Add(2 * time.Second); w.now.Before(end); w.now = w.now.Add(20 * time.Second) {
		elapsed := w.now.Sub(begin)
		if part := end.Sub(begin) / kills; elapsed/part != (elapsed-20*time.Second)/part || elapsed < 20*time.Second {
			n := random.IntN(len(nodes))
			victim := nodes[n]
			victim.runner.Commit = &killed{Committer: c, left: 1, after: random.IntN(2) == 0}
			turn(victim)
			nodes[n] = boot(victim.skew)
			nodes[n].back = w.now.Add(away)
		}
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		split := elapsed > 8*time.Hour && elapsed < 12*time.Hour // one of them is cut off and sees nothing
		for _, n := range nodes {
			if w.now.After(n.back) && !(split && n.skew == 0) {
				turn(n)
			}
		}
	}
	items, err := s.Items(t.Context(), job.ItemQuery{JobID: ledger})
	must(t, err)
	if len(items) != hours*12 || len(late) != hours*12 {
		t.Errorf("%d effects and %d slots of %d", len(items), len(late), hours*12)
	}
	for slot, after := range late {
		if after > time.Minute {
			t.Errorf("the slot %s ran %s late", slot, after)
		}
	}
	census, err := s.Census(t.Context(), w.now)
	if must(t, err); len(census) != 1 { // the ledger
		t.Errorf("not over: %+v", census)
	}
}

// counted is a committer that counts transactions.
type counted struct {
	commit.Committer
	n int
}

func (c *counted) Commit(ctx context.Context, ws ...commit.Write) error {
	c.n++
	return c.Committer.Commit(ctx, ws...)
}

// idle lets three nodes poll a hundred schedules of five minutes for five minutes, twice a second: at most one commit a
// second.
func idle(t *testing.T, s job.Store, c commit.Committer) {
	const schedules, period = 100, 5 * time.Minute
	w := worldOf(t, s, c)
	runs, added := &counted{Committer: c}, 0
	adding := &addCounter{s, &added}
	var nodes []*member
	for range 3 {
		n := &member{runner: w.runner("n"), scheduler: &job.Scheduler{Service: w.service()}}
		n.runner.Commit, n.scheduler.Service.Store = runs, adding
		for i := range schedules {
			name := fmt.Sprint("fetch-", i)
			w.kinds[name] = job.Kind{Name: name, Step: func(_ context.Context, j job.Job) (job.Job, []commit.Write, error) {
				return j.Finish(""), nil, nil
			}}
			n.scheduler.Schedules = append(n.scheduler.Schedules, job.Schedule{Kind: name, Every: period})
		}
		nodes = append(nodes, n)
	}
	begin := now.Truncate(period).Add(period)
	for w.now = begin; w.now.Before(begin.Add(period)); w.now = w.now.Add(500 * time.Millisecond) {
		for _, n := range nodes {
			must(t, n.scheduler.Tick(t.Context()))
			ids, err := s.Due(t.Context(), w.now, 2*schedules)
			must(t, err)
			for _, id := range ids {
				_, _, err := n.runner.Step(t.Context(), id)
				must(t, err)
			}
		}
	}
	if commits := runs.n + added; commits != 2*schedules || float64(commits) > period.Seconds() {
		t.Errorf("%d commits in %s", commits, period)
	}
}

// addCounter is a store that counts the transactions that add jobs.
type addCounter struct {
	job.Store
	n *int
}

func (a *addCounter) Add(ctx context.Context, j job.Job) (job.Job, bool, error) {
	*a.n++
	return a.Store.Add(ctx, j)
}
