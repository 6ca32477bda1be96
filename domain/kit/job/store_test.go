package job_test

import (
	"testing"

	"castellan/domain/kit/job"
	"castellan/domain/kit/job/jobtest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) { jobtest.Run(t, open) }

func TestRunner(t *testing.T) { jobtest.RunRunner(t, open) }

var open = persistencetest.Suite(func(db *persistence.DB) job.Store { return kit.NewJobs(db) })
