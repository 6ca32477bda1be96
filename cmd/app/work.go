package app

import (
	"context"
	"time"

	"castellan/domain/job"
	"castellan/persistence"
)

// jobLife is how long jobs are kept after they were made, once they are over.
const jobLife = 30 * 24 * time.Hour

// work builds what starts background jobs. What runs them is given to the parts
// of their slices.
func (s *service) work() error {
	store := persistence.NewJobs(s.DB)
	s.kinds = map[string]job.Kind{}
	s.jobs = &job.Service{Store: store, Changes: s.changes("", nil), Seal: s.Ring.Seal}
	s.join(part{purge: func(ctx context.Context, old expiry) error { return store.Purge(ctx, old.now.Add(-jobLife)) }})
	return nil
}
