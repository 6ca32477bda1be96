package app

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/factor/challenge"
	"castellan/domain/gate/errand"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/change"
	"castellan/http/auth"
	httperrand "castellan/http/gate/errand"
	httpgateway "castellan/http/gate/gateway"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
)

// flushSpelled is how often a node stores which spellings it refused.
const flushSpelled = 5 * time.Second

// gateway builds the guard for gateways.
func (s *service) gateway() {
	store := gate.NewGateways(s.DB)
	live := gateway.NewCache(store)
	guards := sync.OnceValue(s.guards) // after the start, which makes its parts
	s.gateways = &gateway.Guard{Routes: live.Current, Store: store, Commit: s.commit, Engine: s.starter,
		Challenges: factor.NewChallenges(s.DB), Open: s.Ring.Open,
		Fresh:   func(ctx context.Context, judge func() error) error { return guards().Fresh(ctx, judge) },
		Account: accounts{s.users}.Account, Statements: s.tokens, Issuer: s.cfg.Tokens.Issuer, Now: time.Now,
		BuiltIn: s.ownAction, RefuseUnknownHost: s.cfg.Guard.UnknownHost == config.Refuse}
	// A request at a gateway is proved for the host of its route.
	s.proofs.Host = func(authority string) bool { return live.Current().Names(gateway.HostOf(authority)) }
	admin := &gateway.Admin{Store: store, Changes: s.changes(change.Gateways, live), BuiltIn: s.ownAction,
		Action: s.actionsOfServices()}
	s.join(part{
		groups:    groups(httpgateway.Group{Admin: admin, Guard: s.gateways}),
		actions:   []challenge.Action{s.gateways.Action()},
		tasks:     []task{{flushSpelled, "the counts of refused spellings could not be stored", s.gateways.Flush}},
		snapshots: []snapshot{copyOf(live, change.Gateways)},
		purge:     func(ctx context.Context, old expiry) error { return store.Purge(ctx, old.unreachable) },
		metrics: func(m *metrics.Registry) {
			of := &s.gateways.Stats
			m.Counters("castellan_guard_decisions_total", "Requests of gateways by decision of the guard.", "outcome",
				map[string]func() int64{"unguarded": of.Unguarded.Load, "session": of.Sessions.Load,
					"challenged": of.Challenged.Load, "granted": of.Granted.Load, "refused": of.Refused.Load})
			m.Counter("castellan_guard_trial_total", "Requests of gateways that a route on trial would decide.",
				of.Tried.Load)
		},
	})
}

// mountGateway adds the check of the guard.
func (s *service) mountGateway(guards auth.Guards) {
	httpgateway.Mount(s.server, httpgateway.Options{Guard: s.gateways, Bearer: guards.Bearer,
		Service: func(header string, from netip.Addr) error {
			return guards.Fresh(context.Background(), func() error {
				_, err := s.services.Client(header, from)
				return err
			})
		}})
}

const (
	// errandLife is how long a service can read an outcome, and how long its references stay taken.
	errandLife  = 30 * 24 * time.Hour
	settleEvery = 5 * time.Second
)

// errands builds the guard for other services.
func (s *service) errands() {
	service := &errand.Service{Store: gate.NewErrands(s.DB), Commit: s.commit, Challenges: factor.NewChallenges(s.DB),
		Engine: s.starter, Result: s.answerer.Result, Account: accounts{s.users}.Account, Key: s.services.Key,
		Seals: s.Ring, Statements: s.tokens, Issuer: s.cfg.Tokens.Issuer, Mixed: s.mixed, Now: time.Now,
		Own: s.ownAction}
	s.join(part{
		groups:  groups(httperrand.Group{Service: service, Owner: s.owner, Now: time.Now}),
		actions: []challenge.Action{service.Action()},
		tasks:   []task{{settleEvery, "the outcomes of expired service challenges could not be stored", service.Sweep}},
		purge:   after(errandLife, service.Store.Purge),
	})
}
