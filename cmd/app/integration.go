package app

import (
	"context"
	"time"

	"castellan/domain/job"
	"castellan/domain/registration"
	httpintegration "castellan/http/integration"
	"castellan/persistence"
)

// eventLife is how long other services may read an event.
const eventLife = 90 * 24 * time.Hour

// integration builds what the platform's other services call beside the areas whose records
// they bring.
func (s *service) integration() error {
	s.external = persistence.NewIntegration(s.DB)
	brought := &registration.Service{Users: s.users, External: s.external, Jobs: s.jobs, Changes: s.changes("", nil)}
	s.join(part{
		groups: groups(httpintegration.Events{Store: s.external}, httpintegration.Users{Service: brought}),
		kinds:  []job.Kind{brought.Kind()},
		purge: func(ctx context.Context, old expiry) error {
			return s.external.PurgeEvents(ctx, old.now.Add(-eventLife))
		},
	})
	return nil
}
