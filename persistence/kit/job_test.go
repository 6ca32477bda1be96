package kit_test

import (
	"testing"

	"castellan/domain/kit/job"
	"castellan/domain/kit/job/jobtest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestJobStore(t *testing.T) {
	persistencetest.RunBoth(t, jobtest.Run, func(db *persistence.DB) job.Store { return kit.NewJobs(db) }, "job_item",
		"job")
}

func TestJobRunner(t *testing.T) {
	persistencetest.RunBoth(t, jobtest.RunRunner, func(db *persistence.DB) job.Store { return kit.NewJobs(db) },
		"job_item", "job")
}
