package persistence

import (
	"testing"

	"castellan/domain/job"
	"castellan/domain/job/jobtest"
)

func TestJobStore(t *testing.T) {
	suite(t, jobtest.Run, func(db *DB) job.Store { return NewJobs(db) }, "job_item", "job")
}

func TestJobRunner(t *testing.T) {
	suite(t, jobtest.RunRunner, func(db *DB) job.Store { return NewJobs(db) }, "job_item", "job")
}
