package kit_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/job"
	"castellan/domain/kit/job/jobtest"
	"castellan/domain/kit/storetest"
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

// BenchmarkIdleSchedules is what a node does twice a second for a hundred schedules
// of which none begins a slot.
func BenchmarkIdleSchedules(b *testing.B) {
	db, err := persistence.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "test.db"), persistence.Options{})
	storetest.Must(b, err)
	defer db.Close()
	_, err = persistence.Migrate(b.Context(), db)
	storetest.Must(b, err)
	persistence.Start(db, []byte("key"), "bench")
	now := time.Now()
	store := kit.NewJobs(db)
	s := job.Scheduler{Service: &job.Service{Store: store, Seal: func(plain, _ []byte) []byte { return plain },
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return now }}}}
	for i := range 100 {
		s.Schedules = append(s.Schedules, job.Schedule{Kind: fmt.Sprint("k", i), Every: 5 * time.Minute})
	}
	storetest.Must(b, s.Tick(b.Context()))
	for b.Loop() {
		storetest.Must(b, s.Tick(b.Context()))
		_, err := store.Due(b.Context(), now.Add(-time.Hour), 1000)
		storetest.Must(b, err)
	}
}
