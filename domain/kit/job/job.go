// Package job owns background work: what is too long for a request, what goes to
// many recipients, and what happens every so often. There is one mechanism for all
// of it. A job is a row; its owner, one node at a time, takes it one step further
// and commits the effect of the step, the cursor and the counters together. So a
// job outlives the process that runs it, and goes on where its row says.
//
// The one idea: a kind says what one step does, and never where, when or how often
// it runs. Its class of effect says what happens to a step that a crash cut off:
//
//   - Step is idempotent: it runs again. Its writes commit with the cursor, so they
//     are made once. What it does beside them (a file, a request to another service)
//     must come to the same when it is done twice.
//   - Items go to recipients, which are noted once, in the order of their keys. With
//     AtMostOnce (mail, SMS) a window of items is marked as sending before the first
//     of them is sent. Those that a crash leaves behind are unknown: they are shown,
//     counted, and sent again only when a person says so (Service.Resend).
//
// # To start a job
//
// Call Service.Start with the kind, a key and the parameters. There is one job for
// each kind and key: who starts it again gets the one that is there. The job joins
// the transaction that ctx carries, so an endpoint commits its own row, its audit
// row and its job together, inside the function that it gives to admin.Changes.Do:
//
//	j, _, err := s.Jobs.Start(ctx, by, job.Request{Kind: "accounting", Key: from + "/" + to, Params: p})
//
// Parameters are sealed in the row. Result, Error and the refs of items are not:
// they hold ids and no text of a person, no address and no secret.
//
// # To write a kind
//
// Declare it as a value and give it to the program in the part of its slice:
// part{kinds: []job.Kind{…}, schedules: []job.Schedule{…}}.
//
//	job.Kind{Name: "rates", Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
//		rates, err := provider.Fetch(ctx)
//		return j.Finish(""), writesOf(rates), err
//	}}
//
// A step that is not the last returns j with a new Cursor and counters. Keep a step
// short, a second at most: progress is shown and a cancel is seen between two steps.
// An error fails the attempt, not the job: the step is tried again after 1, 4, 16 and
// 64 seconds, and the job fails with the fifth. Of the error a client sees the text
// of a fault.Error, else nothing but that something went wrong.
//
// docs/jobs.md is the recipe. Start reading at Kind, then service.go and store.go.
package job

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/kit/commit"
)

// State of a job; it is the status of the interface.
type State string

// The states. A paused job waits for its pace, or after a failed attempt.
const (
	Queued    State = "queued"
	Running   State = "running"
	Paused    State = "paused"
	Cancelled State = "cancelled"
	Done      State = "done"
	Failed    State = "failed"
)

// States are all of them.
var States = []State{Queued, Running, Paused, Cancelled, Done, Failed}

// Over reports whether a job of the state is finished.
func (s State) Over() bool { return s == Cancelled || s == Done || s == Failed }

// Job is one piece of background work. Done, Failed, Unknown and Skipped count
// items (or what the kind counts) and add up to Total when it is done.
type Job struct {
	ID      string
	Kind    string
	Key     string // unique among the jobs of the kind
	State   State
	Version int64 // of the row; every change adds one
	// Cancel: a person wants it to end. It is over as soon as its owner has seen it.
	Cancel bool

	// Cursor is where the next step begins; it belongs to the kind. Of a kind with
	// Items it is the number of the last item that is settled.
	Cursor string
	Total  int64
	Counts
	// Failures are the failed by reason; what Job.Fail has not counted is in none.
	Failures []Failure

	Attempts int       // failed attempts of the present step
	NextAt   time.Time // when it is due; zero when it is over
	BeatAt   time.Time // of its last step
	Owner    string    // the runner that took the last step
	Params   []byte    // JSON; sealed in the row, and open in what a kind gets
	Result   string    // for operators: ids and numbers, such as the key of a file
	Error    string    // why it failed, in words that a client may see
	ActorID  string    // who started it: a user id, operator, or schedule

	CreatedAt, StartedAt, FinishedAt time.Time

	// Rest is for what a step returns, and not kept: how long the job pauses before
	// its next step.
	Rest time.Duration
}

// Counts are what became of the items.
type Counts struct{ Done, Failed, Unknown, Skipped int64 }

// Place is where a job stands in the list, newest first.
type Place struct{ ID string }

func (j Job) Mark() Place { return Place{j.ID} }

// Finish is j when its work is done.
func (j Job) Finish(result string) Job {
	j.State, j.Result = Done, result
	return j
}

// Into reads the parameters.
func (j Job) Into(params any) error {
	if err := json.Unmarshal(j.Params, params); err != nil {
		return fmt.Errorf("read the parameters of a job: %w", err)
	}
	return nil
}

// Slot is the beginning of the slot for which a schedule started the job.
func (j Job) Slot() (time.Time, error) { return time.Parse(time.RFC3339, j.Key) }

// Kind is one sort of work. It has either Step or Items.
type Kind struct {
	Name string // as the interface shows it in type
	// Step takes a job one step further: it returns the job as it is afterwards and
	// the writes that commit with it. It sets Cursor, Total, the counts, Result and
	// Rest, counts what failed by Fail, and ends the job by Finish; everything else is not its own. ctx ends when
	// the job is cancelled or leaves this node; then the step is forgotten and counts
	// as no attempt.
	Step  func(ctx context.Context, j Job) (next Job, writes []commit.Write, err error)
	Items *Items
}

// Effect says what happens to an item whose sending was cut off by a crash.
type Effect int

// The effects.
const (
	AtMostOnce Effect = iota // it is unknown until a person has it sent again
	Repeatable               // it is sent again
)

// Items is work for each of many recipients. A failing item never stops the rest.
type Items struct {
	Effect Effect
	// Snapshot returns up to limit refs that follow after ("" is the beginning), in
	// the order of their keys; fewer than limit end the list. A ref is an id of at
	// most 200 bytes, and stands in a job once. Everybody is noted before the first
	// item is sent: who comes later gets nothing.
	Snapshot func(ctx context.Context, j Job, after string, limit int) (refs []string, err error)
	// Send serves one recipient, in 10 s at most, and returns the writes that commit
	// with its outcome. nil: done; Skip: it was not to be sent; Unsure: perhaps it was
	// sent; Later: nothing was sent, and the item is tried again like a failed step:
	// the fifth time it fails, or, where no other could be sent, the job does.
	// Any other error says that the item has failed, for good, and the text of a
	// fault.Error says why. After a panic an item of AtMostOnce is unknown, and any
	// other has failed.
	Send func(ctx context.Context, j Job, ref string) ([]commit.Write, error)
	// After each Group of items the job pauses; 0: it does not.
	Group int
	Pause time.Duration
	// Parallel is how many items are sent at the same time; 0 means 1.
	Parallel int
}

// Window is how many items are marked and sent together; after a crash no more
// than these are unknown. After windowTime no other item of the window is sent
// before the outcome of those that were is saved.
const (
	Window     = 20
	windowTime = time.Second
)

// Schedule starts a job of a kind in every slot of a period. The slot is
// floor(now, Every) in UTC, and its beginning, in RFC 3339, is the key of the job:
// every node tries, and one job comes of it.
type Schedule struct {
	Kind  string
	Every time.Duration
	// Back is how many earlier slots are made up for when no node was there.
	Back int
}

// ScheduleActor is the ActorID of a job that a schedule started.
const ScheduleActor = "schedule"

// Slots are the keys of the slots to try at an instant, the oldest first.
func (s Schedule) Slots(now time.Time) []string {
	keys := make([]string, 0, s.Back+1)
	for i := s.Back; i >= 0; i-- {
		slot := now.UTC().Truncate(s.Every).Add(-time.Duration(i) * s.Every)
		keys = append(keys, slot.Format(time.RFC3339))
	}
	return keys
}
