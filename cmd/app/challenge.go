package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"castellan/actors"
	"castellan/cmd/app/doctor"
	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
	"castellan/domain/proof/evidence"
	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	httpapi "castellan/http"
	"castellan/http/auth"
	httpchallenge "castellan/http/factor/challenge"
	httpmfa "castellan/http/factor/mfa"
	httpremembered "castellan/http/factor/remembered"
	"castellan/http/office/foureyes"
	httppresence "castellan/http/people/presence"
	httpevidence "castellan/http/proof/evidence"
	"castellan/http/rest"
	"castellan/http/socket"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
)

const (
	stuckAfter = 5 * time.Second // an action that has not reported by then is requested again
	stuckMost  = 100             // challenges resumed at one time
)

// methodTimes limits the times of methods; in development mode they are short enough to see a code expire (D-MFA-13).
func methodTimes(c config.Config) mfa.Times {
	t := mfa.Times{ChallengeMs: c.MFA.ChallengeTTL.Milliseconds()}
	if c.Dev {
		t.LeastMs = 1000
	}
	return t
}

// challenges builds the engine of challenges: its configuration, the actors that own challenges and users, and the
// sockets that receive their events.
func (s *service) challenges() error {
	policies := mfa.NewCache(factor.NewMFA(s.DB))
	admin := &mfa.Admin{Store: factor.NewMFA(s.DB), Changes: s.changes(change.MFA, policies),
		Guarded: slices.Sorted(maps.Values(s.cfg.MFA.Guarded)), Grave: graveActions(s.cfg.MFA.Guarded, httpapi.Endpoints()),
		Times: methodTimes(s.cfg), Keeps: keptActions(guardedEndpoints(s.cfg.MFA, httpapi.Endpoints()))}
	s.join(part{
		groups:    groups(httpmfa.Group{Admin: admin, Service: s.serviceAction}),
		snapshots: []snapshot{copyOf(policies, change.MFA)},
	})

	book, err := message.NewBook(httpapi.Title, nil)
	if err != nil {
		return err
	}
	store, warm := factor.NewChallenges(s.DB), new(actors.WarmCache)
	messenger := &stepup.Messenger{Config: stepupConfig(s.cfg), Catalog: policies.Catalog, Book: book, Ring: s.Ring,
		Store: store, Outbox: delivery.NewOutbox(s.DB), Dispatch: s.dispatch, Now: time.Now}
	_, embedded := s.cfg.Database.SQLitePath()
	s.node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: store, Outbox: delivery.NewOutbox(s.DB),
		Commit: s.revoking(), Actions: s.actions, Rules: rules(s.cfg), Accounts: accounts{s.users},
		Guessed: messenger.Guessed(rules(s.cfg)),
		Uses: map[challenge.Name]actors.Uses{
			challenge.TOTP: totp.Use,
			challenge.PUSH: stepup.Use,
		},
		Unclustered: s.cfg.Cluster.GossipAddr == "" && !embedded, Sessions: s.revocations, Seal: s.Ring.Seal,
		Open: s.Ring.Open, Mismatch: func() { s.mismatches.Add(1) }, Grace: s.cfg.MFA.PAuthGrace, Now: time.Now,
		Log: s.log})...)
	s.client = actors.Client{Node: s.node, WarmCache: warm, Now: time.Now}

	messenger.UserGate = s.client
	s.starter = &stepup.Starter{Messenger: messenger, Actions: s.actions, Accounts: accounts{s.users},
		Tokens: challengeTokens{s.tokens, time.Now}, Challenges: s.client, Commit: s.commit,
		Remembered: factor.NewRemembered(s.DB), Finishes: s.revoking(), Owners: account.NewUsers(s.DB).Owners}
	admin.Can = s.starter.Can
	s.answerer = &stepup.Answerer{Messenger: messenger, Actions: s.actions, Accounts: accounts{s.users},
		Sessions: s.revocations, Challenges: s.client, Leaving: s.leaving}
	s.hub = socket.NewHub(s.client, s.answerer.Open, time.Now, s.log)
	s.client.Listen(s.hub.Receive)
	s.client.OnMove(s.hub.Moved)
	s.remembered = &remembered.Service{Store: factor.NewRemembered(s.DB), Catalog: policies.Catalog, Commit: s.commit,
		Now: time.Now}
	s.join(part{
		groups: groups(
			httpchallenge.Group{Answers: s.answerer, Now: time.Now, Zone: s.cfg.Language.Zone(), CountryName: geo.Name},
			httpmfa.Explain{Admin: admin, Start: s.starter.Explain,
				Rehearse: func(ctx context.Context, by audit.By, p mfa.Policy) (r stepup.Rehearsal, err error) {
					if err := admin.Judge(ctx, p); err != nil {
						return r, err
					}
					return s.starter.Rehearse(ctx, kit.NewAudit(s.DB), by, p)
				}},
			httpremembered.Group{Service: s.remembered},
			httpevidence.Group{Evidence: store.Evidence, Document: messenger.Document, Audit: kit.NewAudit(s.DB).List,
				Sign: s.signEvidence},
			httppresence.Group{Rooms: s.client, Users: s.users, Shows: s.shows}),
		tasks: []task{{stuckAfter, "executing challenges could not be resumed",
			func(ctx context.Context) error { return s.resume(ctx, store) }}},
		purge: func(ctx context.Context, old expiry) error {
			ended := old.now.Add(-s.cfg.MFA.ChallengeTTL - s.cfg.MFA.PAuthGrace)
			err := errors.Join(store.PurgeOutcomes(ctx, old.now, ended),
				store.PurgePushes(ctx, old.now.Add(-challenge.PushMemory)),
				factor.NewRemembered(s.DB).Purge(ctx, old.now), store.Purge(ctx, old.unreachable))
			if keep := s.cfg.Audit.Keep; keep > 0 {
				err = errors.Join(err, store.PurgeEvidence(ctx, old.now.Add(-keep)))
			}
			return err
		},
		metrics: s.challengeMetrics,
	})
	return nil
}

// signEvidence adds the statement of the service, by the key that signs tokens now.
func (s *service) signEvidence(e evidence.Evidence) (evidence.Evidence, error) {
	now := time.Now()
	kid, key := s.Ring.Signer(now)
	return e.Sign(s.cfg.Tokens.Issuer, now, kid, key)
}

// resume wakes the owners of challenges whose action has not reported.
func (s *service) resume(ctx context.Context, store challenge.Store) error {
	ids, err := store.Stuck(ctx, time.Now().Add(-stuckAfter), stuckMost)
	for _, id := range ids {
		s.client.Resume(id)
	}
	return err
}

func (s *service) challengeMetrics(m *metrics.Registry) {
	m.Counter("castellan_challenges_started_total", "Challenges that were started.", s.commit.Started.Load)
	ended := map[string]func() int64{}
	for outcome, n := range s.commit.Ended {
		ended[outcome] = n.Load
	}
	m.Counters("castellan_challenges_ended_total", "Ended challenges by outcome; expired ones are not counted.",
		"outcome", ended)
	m.Counter("castellan_intent_mismatches_total", "Approved operations that were not executed because they had changed.",
		s.mismatches.Load)
	m.Counter("castellan_outbox_capped_total", "Codes refused by a message limit after a verified password or session.",
		s.starter.Capped.Load)
	m.Gauge("castellan_sockets_open", "Open sockets.", func() float64 { return float64(s.hub.Live()) })
}

// guardedEndpoints are the endpoints that the configuration protects by a challenge. They are those in mfa.guarded,
// with their own codes, and, with mfa.guard_administration, the other sensitive ones. If one of them needs a second
// person and returns a secret, the challenge also guards the call that fetches it.
func guardedEndpoints(c config.MFA, all []rest.Endpoint) map[string]string {
	guarded := map[string]string{}
	for _, e := range all {
		if e.Sensitive && c.GuardAdministration {
			guarded[e.Key()] = doctor.Administration
		}
	}
	maps.Copy(guarded, c.Guarded)
	for _, e := range all {
		if code := guarded[e.Key()]; code != "" && len(e.Secrets) > 0 && slices.Contains(c.FourEyes, e.Key()) {
			guarded[foureyes.FetchKey] = cmp.Or(guarded[foureyes.FetchKey], code)
		}
	}
	return guarded
}

// keptActions lists the actions that an administrator completes to log in and to change an MFA policy.
func keptActions(guarded map[string]string) []string {
	codes := []string{mfa.Login}
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		if code := guarded[method+" "+httpmfa.PolicyPath]; code != "" {
			codes = append(codes, code)
		}
	}
	return codes
}

// gravePaths are the paths below which requests move money or change credentials.
var gravePaths = []string{"/asset/", "/auth/", "/blockage/", "/integration/deposits", "/integration/withdrawals",
	"/user/geofilter/"}

// graveActions lists the actions that guard an endpoint which moves money or changes credentials.
func graveActions(guarded map[string]string, all []rest.Endpoint) (codes []string) {
	for _, e := range all {
		code := guarded[e.Key()]
		if code != "" && (e.Sensitive || e.Method != "GET" && slices.ContainsFunc(gravePaths, func(p string) bool {
			return strings.HasPrefix(e.Path, p)
		})) {
			codes = append(codes, code)
		}
	}
	return codes
}

// guarded registers the actions of endpoints that the configuration protects by a challenge. The code of an action with
// its own effect would execute that effect instead of the requested call, so it stops the start.
func guarded(endpoints map[string]string, actions challenge.Actions, run auth.Runner) error {
	for _, code := range slices.Compact(slices.Sorted(maps.Values(endpoints))) {
		if code == user.ActionVideoKYC { // its only effect is the challenge, so it may protect an endpoint too
			delete(actions, code)
		}
		if _, known := actions[code]; known {
			return fmt.Errorf("mfa.guarded: %s is the action of other endpoints; choose another code", code)
		}
		actions.Register(auth.Captured(code, run))
	}
	return nil
}

// ownAction reports whether this service starts an action itself. It is called after the start.
func (s *service) ownAction(code string) bool {
	_, known := s.actions[code]
	return known || doctor.OwnActions(s.cfg.MFA)(code)
}

// serviceAction reports whether a service key or a route of gateways starts an action.
func (s *service) serviceAction(code string) bool {
	return !s.ownAction(code) && (s.services.Starts(code) || s.gateways.Routes().Starts(code))
}

// actionsOfServices returns whether another service may start an action.
func (s *service) actionsOfServices() func(context.Context, string) (bool, error) {
	return mfa.ServiceActions(factor.NewMFA(s.DB), s.ownAction)
}

// accounts reads users in the form that challenges need.
type accounts struct{ users user.Store }

func (a accounts) Account(ctx context.Context, userID string) (challenge.Account, error) {
	u, err := a.users.Get(ctx, userID)
	if err != nil {
		return challenge.Account{}, err
	}
	if !u.Active() {
		return challenge.Account{}, fault.New(fault.RecordNotFound, "the account is not active")
	}
	return u.Account(), nil
}

// challengeTokens signs the token of a challenge (D-AUTH-04).
type challengeTokens struct {
	issuer *token.Issuer
	now    func() time.Time
}

func (t challengeTokens) PAuth(challengeID string, expiresAt time.Time) (string, error) {
	now := t.now()
	return t.issuer.Sign(token.Claims{Class: token.PAuth, ID: id.New(now), ChallengeID: challengeID, IssuedAt: now,
		ExpiresAt: expiresAt})
}

func rules(c config.Config) challenge.Rules {
	r := challenge.DefaultRules()
	r.MaxRenewals, r.MethodAttempts, r.ChallengeAttempts = c.MFA.MaxRenewals, c.MFA.MethodAttempts, c.MFA.ChallengeAttempts
	r.FactorAttempts = c.MFA.FactorAttempts
	r.OTPBudget, r.OTPBudgetWindowMs = c.MFA.OTPBudget, c.MFA.OTPBudgetWindow.Milliseconds()
	r.TOTPBudget, r.TOTPBudgetWindowMs = c.MFA.TOTPBudget, c.MFA.TOTPBudgetWindow.Milliseconds()
	return r
}

func stepupConfig(c config.Config) stepup.Config {
	s := stepup.Config{TTL: c.MFA.ChallengeTTL, Grace: c.MFA.PAuthGrace, ExecWait: c.MFA.ExecWait,
		MaxOpen: c.MFA.MaxOpen, Lease: c.Outbox.Lease,
		MaxCodeAge: time.Duration(challenge.DefaultRules().CodeMaxAgeMs) * time.Millisecond, Language: c.Language.Default,
		Silent: map[message.Kind]bool{}}
	for _, kind := range c.Notices.Off {
		s.Silent[message.Kind(kind)] = true
	}
	if c.Limits.Enabled {
		s.Caps = stepup.Caps{DestinationHour: c.Limits.DestinationPerHour, DestinationDay: c.Limits.DestinationPerDay,
			UserDay: c.Limits.UserPerDay}
		l := c.Limits
		s.Push = challenge.PushRules{Sent: l.PushPending, Window: l.PushWindow, SentDay: l.PushPerDay,
			Denials: l.PushDenials, DenialWindow: l.PushDenialWindow, Pause: l.PushPause}
		s.PrefixHour, s.DialDay = c.Limits.IPPerHour, c.Limits.CountryPerDay
	}
	return s
}
