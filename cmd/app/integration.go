package app

import (
	"context"
	"time"

	"castellan/domain/challenge"
	"castellan/domain/contract"
	"castellan/domain/job"
	"castellan/domain/password"
	"castellan/domain/registration"
	httpintegration "castellan/http/integration"
	httpregistration "castellan/http/registration"
	"castellan/persistence/access"
	"castellan/persistence/kit"
)

// eventLife is how long other services may read an event.
const eventLife = 90 * 24 * time.Hour

// registration builds the sign-ups of users.
func (s *service) registration(agreed *contract.Service) {
	signups := &registration.SignUps{Users: s.users, Contracts: agreed.Store, Engine: s.starter, First: s.logins.First,
		Hasher: s.hasher, Policy: password.Policy{MinChars: s.cfg.Password.MinLength, MaxChars: s.cfg.Password.MaxLength},
		Commit: s.commit, Place: placeOf(s.cfg.Limits), Now: time.Now}
	if l := s.cfg.Limits; l.Enabled {
		store := access.NewPasswordGuards(s.DB)
		bound := func(n int, window time.Duration) *password.Guards {
			return password.NewGuards(store, s.DB, password.Limit(n, window), time.Now)
		}
		signups.Starts = &registration.Bounds{Networks: bound(l.ResetPerIP, l.ResetIPWindow),
			Phones: bound(l.ResetPerPhone, l.ResetPhoneWindow), // The caps of messages count an address for each phone number.
			Mails:  bound(l.ResetPerPhone, max(l.ResetPhoneWindow, time.Hour))}
	}
	s.signups = httpregistration.Group{Service: signups, Contracts: agreed, Enabled: s.cfg.Registration.Enabled}
	s.join(part{groups: groups(s.signups), actions: []challenge.Action{signups.Action()}})
}

// integration builds what the platform's other services call beside the areas whose records
// they bring.
func (s *service) integration() error {
	s.external = kit.NewIntegration(s.DB)
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
