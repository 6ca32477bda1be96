package apitest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"castellan/domain/admin"
	"castellan/domain/job"
	"castellan/domain/keyring"
	"castellan/domain/storetest"
	"castellan/persistence"
)

// Jobs runs background jobs when a test says so, one step after the other.
type Jobs struct {
	*job.Service
	Kinds map[string]job.Kind // filled by the test
	run   *job.Runner
}

// NewJobs returns the jobs of a database. They see the time of now.
func NewJobs(t *testing.T, db *persistence.DB, ring *keyring.Ring, now func() time.Time) *Jobs {
	store, kinds := persistence.NewJobs(db), map[string]job.Kind{}
	return &Jobs{
		Service: &job.Service{Store: store, Changes: admin.Changes{Commit: db, Now: now}, Seal: ring.Seal},
		Kinds:   kinds,
		run: &job.Runner{Store: store, Commit: db, Kinds: kinds, Open: ring.Open, Now: now, Log: slog.Default(),
			Name: "test", Leaving: t.Context()},
	}
}

// Finish takes a job to its end and returns it with its items. pause is called
// with the instant until which the job pauses; it moves the clock.
func (j *Jobs) Finish(t *testing.T, id string, pause func(until time.Time)) (job.Job, []job.Item) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for over := false; !over; {
		due, ended, err := j.run.Step(ctx, id)
		storetest.Must(t, err)
		if over = ended; !over {
			pause(due)
		}
	}
	end, err := j.Store.Get(ctx, id)
	storetest.Must(t, err)
	items, err := j.Store.Items(ctx, job.ItemQuery{JobID: id})
	storetest.Must(t, err)
	return end, items
}
