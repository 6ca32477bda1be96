package app

import (
	"context"
	"net/netip"
	"time"

	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/token"
	"castellan/domain/money/transaction"
	"castellan/domain/proof/dpop"
	"castellan/domain/session/replace"
	"castellan/domain/session/session"
	httppassword "castellan/http/account/password"
	httpsession "castellan/http/session/session"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	sessionstore "castellan/persistence/session"
)

const (
	tokenMemory  = 1 << 17
	loginHistory = 400 * 24 * time.Hour // how long logins are remembered
	foldEvery    = 15 * time.Second
)

// sessions builds the check of tokens: their issuer, and the tables of ended sessions and of their last use.
func (s *service) sessions() error {
	s.tokens = token.NewIssuer(s.Ring, s.cfg.Tokens.Issuer, s.cfg.Tenant.ID, time.Now, tokenMemory)
	s.revocations = session.NewRevocations(revocationLife(s.cfg), time.Now)
	s.proofs = &dpop.Verifier{Ring: s.Ring, Commit: s.DB, PublicURL: s.publicURL, BasePath: s.cfg.HTTP.BasePath,
		Origins: s.cfg.HTTP.CORSOrigins, AnyHost: s.cfg.Source("http.public_url") == config.FromDefault, Now: time.Now}
	s.activity = session.NewActivity(s.DB, time.Now)
	store := sessionstore.NewSessions(s.DB)
	s.join(part{
		snapshots: []snapshot{{
			topic:  change.Sessions,
			load:   func(ctx context.Context) error { return s.revocations.Load(ctx, store) },
			follow: each(s.revocations.Apply),
		}},
		loops: []loop{{"session activity could not be written", s.activity.Run}},
		purge: func(ctx context.Context, old expiry) error {
			return store.Purge(ctx, old.unreachable, old.now.Add(-loginHistory))
		},
	})
	return nil
}

// login builds logins, and the change and reset of passwords.
func (s *service) login() (err error) {
	if s.hasher, err = NewHasher(s.cfg); err != nil {
		return err
	}
	sessions, wrong := sessionstore.NewSessions(s.DB), account.NewPasswordGuards(s.DB)
	s.logins = &session.Service{Users: s.users, Sessions: sessions, Hasher: s.hasher, Guards: s.tries(guardRules(s.cfg)),
		Spray:  password.NewSpray(s.limits, s.cfg.Limits.WrongPerPrefix, s.cfg.Limits.ExemptCIDRs, time.Now),
		Place:  placeOf(s.cfg.Limits),
		Starts: s.starter, Notices: s.starter, Commit: s.commit, Tokens: s.tokens, Revocations: s.revocations,
		Conceal: conceal(s.Ring), Former: former(s.Ring),
		Admits: admits(s.cfg), Dev: s.cfg.Dev, TokenTTL: s.cfg.Tokens.XAuthTTL, Passkeys: s.devices, Concludes: s.answerer,
		SessionTTL: s.cfg.Sessions.TTL, Idle: s.cfg.Sessions.Idle, Proofs: s.proofs, Now: time.Now}
	s.join(part{
		groups:  groups(httpsession.Group{Service: s.logins, CountryName: geo.Name}),
		actions: []challenge.Action{s.logins.LoginAction()},
		metrics: s.hasherMetrics,
		purge:   after(0, wrong.Purge),
		tasks:   []task{{foldEvery, "refused logins could not be summarized", s.logins.FoldRefusals}},
	})

	s.join(s.hashKinds())

	tokens := sessionstore.NewResetTokens(s.DB)
	passwords := &replace.Service{Users: s.users, Sessions: sessions, Tokens: tokens, Signer: s.tokens,
		Engine: s.starter, Hasher: s.hasher,
		Policy: PasswordPolicy(s.cfg), Place: placeOf(s.cfg.Limits), Wrong: s.tries(replace.WrongRules()),
		Commit: s.revoking(), Ring: s.Ring, Admits: admits(s.cfg), Dev: s.cfg.Dev, TokenTTL: s.cfg.Tokens.OTAuthTTL,
		Now: time.Now}
	if l := s.cfg.Limits; l.Enabled {
		passwords.Phones = s.tries(password.Limit(l.ResetPerPhone, l.ResetPhoneWindow))
		passwords.Networks = s.tries(password.Limit(l.ResetPerIP, l.ResetIPWindow))
	}
	s.passwords = httppassword.Group{Service: passwords}
	s.join(part{
		groups:  groups(s.passwords),
		actions: []challenge.Action{passwords.ResetAction(), passwords.ChangeAction()},
		purge:   after(0, tokens.Purge),
	})
	return nil
}

// tries counts attempts by rules.
func (s *service) tries(r password.GuardRules) *password.Guards {
	return password.NewGuards(account.NewPasswordGuards(s.DB), s.DB, r, time.Now)
}

// alarms handles the reports of devices that the owner did not start a challenge.
func (s *service) alarms() *session.Alarms {
	return &session.Alarms{Sessions: &session.Service{Users: s.users, Sessions: sessionstore.NewSessions(s.DB),
		Notices: s.starter, Commit: s.commit, Revocations: s.revocations, Now: time.Now},
		Challenges: factor.NewChallenges(s.DB), Hold: transaction.HoldQueued(s.jobs)}
}

// revoking is the committer of writers that cannot update this node's tables themselves after they ended or changed
// sessions.
func (s *service) revoking() session.Revoking {
	return session.Revoking{Committer: s.commit, Revocations: s.revocations,
		Also: func(w commit.Write) { s.geofilters.Apply(w) }}
}

// revocationLife is the longest lifetime of anything that a revocation must stop.
func revocationLife(c config.Config) time.Duration {
	return max(c.Tokens.XAuthTTL, mfa.MaxMethodMs*time.Millisecond+c.MFA.PAuthGrace, c.MFA.FourEyesTTL)
}

// admits applies the geographic filter in the row of the account to a client without a token (D-GEO-02).
func admits(c config.Config) func(user.User, challenge.Starter) bool {
	policy := geoPolicy(c)
	return func(u user.User, from challenge.Starter) bool {
		if u.Countries == "" {
			return true
		}
		ip, _ := netip.ParseAddr(from.IP) // an invalid address has no country
		return policy.Admits(u.Countries, from.Country, ip)
	}
}

func geoPolicy(c config.Config) geo.Policy {
	return geo.Policy{AllowPrivate: c.Geo.AllowPrivate, AllowUnknown: c.Geo.AllowUnknown}
}
