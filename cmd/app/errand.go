package app

import (
	"context"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/errand"
	httperrand "castellan/http/access/errand"
	"castellan/persistence/access"
)

const (
	// errandLife is how long a service can read an outcome, and how long its references stay taken.
	errandLife  = 30 * 24 * time.Hour
	settleEvery = 5 * time.Second
)

// errands builds the guard for other services.
func (s *service) errands() {
	service := &errand.Service{Store: access.NewErrands(s.DB), Commit: s.commit, Challenges: access.NewChallenges(s.DB),
		Engine: s.starter, Result: s.answerer.Result, Account: accounts{s.users}.Account, Key: s.services.Key,
		Seals: s.Ring, Statements: s.tokens, Issuer: s.cfg.Tokens.Issuer, Now: time.Now}
	s.join(part{
		groups:  groups(httperrand.Group{Service: service, Owner: s.owner, Now: time.Now}),
		actions: []challenge.Action{service.Action()},
		tasks:   []task{{settleEvery, "the outcomes of expired service challenges could not be stored", service.Sweep}},
		purge: func(ctx context.Context, old expiry) error {
			return service.Store.Purge(ctx, old.now.Add(-errandLife))
		},
	})
}
