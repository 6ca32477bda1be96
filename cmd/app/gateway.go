package app

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/domain/access/challenge"
	"castellan/domain/access/gateway"
	"castellan/domain/kit/change"
	httpgateway "castellan/http/access/gateway"
	"castellan/http/auth"
	"castellan/persistence/access"
)

// gateway builds the guard for gateways.
func (s *service) gateway() {
	store := access.NewGateways(s.DB)
	live := gateway.NewCache(store)
	guards := sync.OnceValue(s.guards) // after the start, which makes its parts
	s.gateways = &gateway.Guard{Routes: live.Current, Store: store, Commit: s.commit, Engine: s.starter,
		Challenges: access.NewChallenges(s.DB), Open: s.Ring.Open,
		Fresh:   func(ctx context.Context, judge func() error) error { return guards().Fresh(ctx, judge) },
		Account: accounts{s.users}.Account, Statements: s.tokens, Issuer: s.cfg.Tokens.Issuer, Now: time.Now}
	admin := &gateway.Admin{Store: store, Changes: s.changes(change.Gateways, live), BuiltIn: func(code string) bool {
		_, known := s.actions[code]
		return known
	}}
	s.join(part{
		groups:    groups(httpgateway.Group{Admin: admin, Guard: s.gateways}),
		actions:   []challenge.Action{s.gateways.Action()},
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
	httpgateway.Mount(s.server, httpgateway.Options{Guard: s.gateways, Session: guards.UserAt,
		Foreign: func(ctx context.Context, raw string) (userID, session string, ok bool, err error) {
			if !s.foreign.Names(raw) {
				return "", "", false, nil
			}
			userID, of, err := s.foreignUser(ctx, raw)
			return userID, of.Session, true, err
		},
		Service: func(header string, from netip.Addr) error {
			return guards.Fresh(context.Background(), func() error {
				_, err := s.services.Client(header, from)
				return err
			})
		}})
}
