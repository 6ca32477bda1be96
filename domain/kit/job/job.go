// Package job runs background work: work that is too long for a request, that goes to many recipients, or that recurs.
// One mechanism serves all three. A job is a row; its owner, one node at a time, advances it by one step and commits
// the effect of the step, the cursor and the counters together. So a job outlives the process that runs it, and resumes
// where its row says.
//
// The one idea: a kind defines what one step does, and never where, when or how often it runs. Its class of effect
// defines what happens to a step that a crash interrupts:
//
//   - Step is idempotent: it runs again. Its writes commit with the cursor, so they
//     take effect once. Its other effects (a file, a request to another service)
//     must have the same result when they are repeated.
//   - Items go to recipients, which are recorded once, in the order of their keys.
//     With AtMostOnce (mail, SMS) a window of items is marked as sending before the
//     first of them is sent. Items interrupted by a crash are unknown: they are shown
//     and counted, and sent again only when a user resends them (Service.Resend).
//
// # To start a job
//
// Call Service.Start with the kind, a key and the parameters. There is one job for each kind and key: a repeated start
// returns the existing one. The job joins the transaction that ctx carries, so an endpoint commits its own row, its
// audit row and its job together, inside the function that it gives to admin.Changes.Do:
//
//	j, _, err := s.Jobs.Start(ctx, by, job.Request{Kind: "accounting", Key: from + "/" + to, Params: p})
//
// Parameters are sealed in the row. Result, Error and the refs of items are not: they hold ids, and neither texts
// written by users nor addresses or secrets.
//
// # To write a kind
//
// Declare it as a value and list it in the part of its slice: part{kinds: []job.Kind{…}, schedules: []job.Schedule{…}}.
//
//	job.Kind{Name: "rates", Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
//		rates, err := provider.Fetch(ctx)
//		return j.Finish(""), writesOf(rates), err
//	}}
//
// A step that is not the last returns j with a new Cursor and counters. Keep a step short, a second at most: progress
// is shown and a cancel takes effect between two steps. An error fails the attempt, not the job: the step is tried
// again after 1, 4, 16 and 64 seconds, and the job fails with the fifth attempt. A client sees the text of a
// fault.Error; any other error is shown as an internal error.
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

// State is the state of a job; the interface shows it as status.
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

// Over reports whether a job of the state is finished.
func (s State) Over() bool { return s == Cancelled || s == Done || s == Failed }

// Job is one piece of background work. Done, Failed, Unknown and Skipped count items, or the units of the kind, and add
// up to Total when the job is done.
type Job struct {
	ID      string
	Kind    string
	Key     string // unique among the jobs of the kind
	State   State
	Version int64 // version of the row; every change adds one
	// Cancel is true if a user has cancelled the job. The job ends as soon as its owner has seen it.
	Cancel bool

	// Cursor is where the next step begins; the kind defines it. For a kind with Items it is the number of the last
	// settled item.
	Cursor string
	Total  int64
	Counts
	// Failures groups the failed items by reason; items not counted by Job.Fail are in no group.
	Failures []Failure

	Attempts int       // failed attempts of the present step
	NextAt   time.Time // when it is due; zero if it is over
	BeatAt   time.Time // time of its last step
	Owner    string    // the runner that took the last step
	Params   []byte    // JSON; sealed in the row, unsealed for a kind
	Result   string    // for operators: ids and numbers, such as the key of a file
	Error    string    // the error, in words that a client may see
	ActorID  string    // who started it: a user id, operator, or schedule

	CreatedAt, StartedAt, FinishedAt time.Time

	// Rest is returned by a step and not stored: how long the job pauses before its next step.
	Rest time.Duration
}

// Counts are the outcomes of the items.
type Counts struct{ Done, Failed, Unknown, Skipped int64 }

// Place is the position of a job in the list, newest first.
type Place struct{ ID string }

func (j Job) Mark() Place { return Place{j.ID} }

// Finish returns j as done.
func (j Job) Finish(result string) Job {
	j.State, j.Result = Done, result
	return j
}

// Into unmarshals the parameters.
func (j Job) Into(params any) error {
	if err := json.Unmarshal(j.Params, params); err != nil {
		return fmt.Errorf("read the parameters of a job: %w", err)
	}
	return nil
}

// Slot returns the beginning of the slot for which a schedule started the job.
func (j Job) Slot() (time.Time, error) { return time.Parse(time.RFC3339, j.Key) }

// Kind is a kind of work. It has either Step or Items.
type Kind struct {
	Name string // the type of the job in the interface
	// Step advances a job by one step: it returns the updated job and the writes that commit with it. It sets Cursor,
	// Total, the counts, Result and Rest, counts failures by Fail, and ends the job by Finish; it must not change other
	// fields. ctx ends when the job is cancelled or leaves this node; then the step is discarded and does not count as
	// an attempt.
	Step  func(ctx context.Context, j Job) (next Job, writes []commit.Write, err error)
	Items *Items
	// About returns the subject of a job for operators, from its key and its unsealed parameters: the title of a
	// notification, the days of a journal. nil: the name of the kind says all.
	About func(j Job) string
}

// Effect defines what happens to an item whose sending is interrupted by a crash.
type Effect int

// The effects.
const (
	AtMostOnce Effect = iota // it is unknown until a user resends it
	Repeatable               // it is sent again
)

// Items is work for each of many recipients. A failed item never stops the rest.
type Items struct {
	Effect Effect
	// Snapshot returns up to limit refs that follow after ("" is the beginning), in the order of their keys; fewer than
	// limit end the list. A ref is an id of at most 200 bytes and is unique in a job. All recipients are recorded
	// before the first item is sent; recipients added later get nothing.
	Snapshot func(ctx context.Context, j Job, after string, limit int) (refs []string, err error)
	// Send serves one recipient, in 10 s at most, and returns the writes that commit with its outcome. nil: done. Skip:
	// not to be sent. Unsure: possibly sent. Later: nothing was sent, and the item is retried like a failed step. With
	// the fifth Later the item fails, or the job does if no other item could be sent. Any other error means that the
	// item has failed permanently; the text of a fault.Error is the reason. After a panic an item of AtMostOnce is
	// unknown, and any other has failed.
	Send func(ctx context.Context, j Job, ref string) ([]commit.Write, error)
	// Group is the number of items after which the job pauses; 0: no pauses.
	Group int
	Pause time.Duration
	// Parallel is how many items are sent in parallel; 0 means 1.
	Parallel int
}

// Window is how many items are marked and sent together; at most this many are unknown after a crash. After windowTime
// no other item of the window is sent before the outcomes so far are saved.
const (
	Window     = 20
	windowTime = time.Second
)

// Schedule starts a job of a kind in every slot of a period. The slot is floor(now, Every) in UTC, and its beginning,
// in RFC 3339, is the key of the job: every node tries, and exactly one job is started.
type Schedule struct {
	Kind  string
	Every time.Duration
	// Back is how many earlier slots are started late if no node was running.
	Back int
}

// ScheduleActor is the ActorID of a job that a schedule started.
const ScheduleActor = "schedule"

// Slots returns the keys of the slots to try at an instant, the oldest first.
func (s Schedule) Slots(now time.Time) []string {
	keys := make([]string, 0, s.Back+1)
	for i := s.Back; i >= 0; i-- {
		slot := now.UTC().Truncate(s.Every).Add(-time.Duration(i) * s.Every)
		keys = append(keys, slot.Format(time.RFC3339))
	}
	return keys
}
