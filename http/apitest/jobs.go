package apitest

import (
	"log/slog"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/job"
	"castellan/domain/kit/job/jobtest"
	"castellan/domain/kit/keyring"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// Jobs runs background jobs on request of a test, step by step.
type Jobs struct {
	*job.Service
	Kinds map[string]job.Kind // filled by the test
	run   *job.Runner
}

// NewJobs returns the jobs of a database. They use now as the clock.
func NewJobs(t *testing.T, db *persistence.DB, ring *keyring.Ring, now func() time.Time) *Jobs {
	store, kinds := kit.NewJobs(db), map[string]job.Kind{}
	return &Jobs{
		Service: &job.Service{Store: store, Changes: admin.Changes{Commit: db, Now: now}, Seal: ring.Seal},
		Kinds:   kinds,
		run: &job.Runner{Store: store, Commit: db, Kinds: kinds, Open: ring.Open, Now: now, Log: slog.Default(),
			Name: "test", Leaving: t.Context()},
	}
}

// Finish runs a job to its end and returns it with its items. pause is called with the instant
// until which the job pauses; it moves the clock.
func (j *Jobs) Finish(t *testing.T, id string, pause func(until time.Time)) (job.Job, []job.Item) {
	t.Helper()
	return jobtest.Finish(t, j.run, id, pause)
}
