package app

import (
	"context"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/password"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
	"castellan/http/auth"
	httpintegration "castellan/http/people/integration"
	httpregistration "castellan/http/people/registration"
	"castellan/http/rest"
	"castellan/persistence/access"
	"castellan/persistence/kit"
)

// eventLife is how long other services may read an event.
const eventLife = 90 * 24 * time.Hour

// registration builds the sign-up of users.
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

// owner returns the user of an x-auth token, and the starter of a challenge that another service starts for that user.
// The challenge ends with the session of the token, which has the address and the device.
func (s *service) owner(ctx context.Context, who rest.Caller, userToken string) (string, challenge.Starter, error) {
	c, err := s.guards().Session(ctx, userToken)
	if err != nil {
		return "", challenge.Starter{}, err
	}
	of, err := access.NewSessions(s.DB).Get(ctx, c.Subject, c.SessionID, time.Now())
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.TokenRevoked, "the session has ended")
	}
	from := auth.From(who)
	from.SessionID, from.IP, from.Country = of.ID, of.IP, of.Country
	from.Brand, from.Model, from.Description = of.Brand, of.Model, of.Description
	return c.Subject, from, err
}

// integration builds the interface for the platform's other services, except for the areas whose records they deliver.
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
