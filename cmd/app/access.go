package app

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/access/allowedip"
	"castellan/domain/access/challenge"
	"castellan/domain/access/challenge/stepup"
	"castellan/domain/access/device"
	"castellan/domain/access/dpop"
	"castellan/domain/access/geofilter"
	"castellan/domain/access/mfa"
	"castellan/domain/access/passkey"
	"castellan/domain/access/password"
	"castellan/domain/access/password/replace"
	"castellan/domain/access/profile"
	"castellan/domain/access/session"
	"castellan/domain/access/totp"
	"castellan/domain/access/user"
	"castellan/domain/kit/change"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/token"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/level"
	httpdevice "castellan/http/access/device"
	httpgeofilter "castellan/http/access/geofilter"
	httppassword "castellan/http/access/password"
	httpsession "castellan/http/access/session"
	httptotp "castellan/http/access/totp"
	httpuser "castellan/http/access/user"
	httpaddressbook "castellan/http/money/addressbook"
	"castellan/http/rest"
	"castellan/persistence/access"
	"castellan/persistence/money"
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
		Now: time.Now}
	s.activity = session.NewActivity(s.DB, time.Now)
	store := access.NewSessions(s.DB)
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
	sessions, wrong := access.NewSessions(s.DB), access.NewPasswordGuards(s.DB)
	guards := func(r password.GuardRules) *password.Guards { return password.NewGuards(wrong, s.DB, r, time.Now) }
	s.logins = &session.Service{Users: s.users, Sessions: sessions, Hasher: s.hasher, Guards: guards(guardRules(s.cfg)),
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
		purge:   func(ctx context.Context, old expiry) error { return wrong.Purge(ctx, old.now) },
		tasks:   []task{{foldEvery, "refused logins could not be summarized", s.logins.FoldRefusals}},
	})

	s.join(s.importedHashes(access.NewImportedHashes(s.DB)))

	tokens := access.NewResetTokens(s.DB)
	passwords := &replace.Service{Users: s.users, Sessions: sessions, Tokens: tokens, Signer: s.tokens,
		Engine: s.starter, Hasher: s.hasher,
		Policy: password.Policy{MinChars: s.cfg.Password.MinLength, MaxChars: s.cfg.Password.MaxLength},
		Place:  placeOf(s.cfg.Limits),
		Wrong:  guards(replace.WrongRules()), Commit: s.revoking(), Ring: s.Ring, Admits: admits(s.cfg),
		Dev: s.cfg.Dev, TokenTTL: s.cfg.Tokens.OTAuthTTL, Now: time.Now}
	if l := s.cfg.Limits; l.Enabled {
		passwords.Phones = guards(password.Limit(l.ResetPerPhone, l.ResetPhoneWindow))
		passwords.Networks = guards(password.Limit(l.ResetPerIP, l.ResetIPWindow))
	}
	s.passwords = httppassword.Group{Service: passwords}
	s.join(part{
		groups:  groups(s.passwords),
		actions: []challenge.Action{passwords.ResetAction(), passwords.ChangeAction()},
		purge:   func(ctx context.Context, old expiry) error { return tokens.Purge(ctx, old.now) },
	})
	return nil
}

func (s *service) hasherMetrics(m *metrics.Registry) {
	m.Gauge("castellan_password_hash_slots", "Maximum number of concurrent password hashes.",
		func() float64 { return float64(s.hasher.Slots()) })
	m.Gauge("castellan_password_hashing", "Password hashes that run.",
		func() float64 { return float64(s.hasher.Running()) })
	m.Gauge("castellan_password_waiting", "Logins waiting for a hash slot.",
		func() float64 { return float64(s.hasher.Waiting()) })
	m.Counter("castellan_password_refused_total", "Logins refused because no hash slot became free in time.",
		s.hasher.Refused)
}

// alarms handles the reports of devices that the owner did not start a challenge.
func (s *service) alarms() *session.Alarms {
	return &session.Alarms{Users: s.users, Sessions: access.NewSessions(s.DB), Challenges: access.NewChallenges(s.DB),
		Notices: s.starter, Commit: s.commit, Revocations: s.revocations, Now: time.Now}
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

// placeOf returns the group of clients that share slots in the queue of hashes. Trusted networks, and all clients in a
// load test, have no limit.
func placeOf(l config.Limits) func(netip.Addr) string {
	return func(ip netip.Addr) string {
		if !l.Enabled || slices.ContainsFunc(l.ExemptCIDRs, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) }) {
			return ""
		}
		return client.Site(ip)
	}
}

func guardRules(c config.Config) password.GuardRules {
	r := password.DefaultGuardRules()
	r.Wait = c.Password.QueueWait
	r.PerRegion = max(r.PerRegion, c.Limits.WrongPasswords)
	r.PerPrefix, r.Window, r.Total = c.Limits.WrongPasswords, c.Limits.WrongPasswordWindow, c.Limits.WrongPasswordsDay
	return r
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

// NewHasher returns the hasher with the configured cost and limits.
func NewHasher(c config.Config) (*password.Hasher, error) {
	p := c.Password
	return password.NewHasher(password.HasherOptions{
		Params: password.Params{MemoryKiB: uint32(p.Argon2MemoryKiB), Passes: uint32(p.Argon2Time),
			Lanes: uint8(p.Argon2Parallelism)},
		Slots: p.HashSlots, Queue: p.Queue, Wait: p.QueueWait,
	})
}

// conceal hashes an identifier without an account under the steady key, so that its wrong passwords are counted across
// key rotations. former are the hashes under the replaced keys.
func conceal(ring *keyring.Ring) func(string) string {
	return func(text string) string { return ring.StableHash("identifier", text) }
}

func former(ring *keyring.Ring) func(string) []string {
	return func(text string) []string { return ring.Former("identifier", text) }
}

// accounts builds the parts of an account: its profile, its factors, its access restrictions, and its withdrawal
// addresses.
func (s *service) accounts() error {
	s.totps = &totp.Service{Store: access.NewTOTP(s.DB), Users: s.users,
		Budgets: access.NewChallenges(s.DB), Commit: s.commit, Ring: s.Ring, Notices: s.starter, Rules: rules(s.cfg),
		Recovery: totp.Limit{Attempts: s.cfg.Limits.RecoveryCodes, Window: s.cfg.Limits.RecoveryCodeWindow},
		Issuer:   s.cfg.MFA.TOTPIssuer, Now: time.Now}
	judge := func(ctx context.Context, userID string, a stepup.Answer) (challenge.Verdict, *challenge.Use, error) {
		return s.totps.Judge(ctx, userID, a.Value)
	}
	s.answerer.Judges = map[challenge.Name]stepup.Judge{challenge.TOTP: judge}
	s.join(part{
		groups:  groups(httptotp.Group{Service: s.totps}),
		actions: []challenge.Action{s.totps.SetupAction(), s.totps.DeactivateAction()},
	})

	devices := access.NewDevices(s.DB)
	s.devices = &device.Service{Store: devices, Users: s.users, Commit: s.commit, Ring: s.Ring, Notices: s.starter,
		Audience: s.publicURL,
		Loopback: s.cfg.Dev, Now: time.Now, Log: s.log, Passkeys: s.passkeys()}
	s.starter.Devices, s.answerer.Devices = s.devices, s.devices
	s.join(part{
		groups:  groups(httpdevice.Group{Service: s.devices, Alarms: s.alarms()}),
		actions: []challenge.Action{s.devices.AddAction(), s.devices.RemoveAction()},
		metrics: func(m *metrics.Registry) {
			m.Counter("castellan_passkey_clone_warnings_total", "Passkey assertions whose counter did not increase.",
				s.devices.Passkeys.Falls.Load)
		},
		purge: func(ctx context.Context, old expiry) error { return devices.Purge(ctx, old.now) },
	})

	changes := s.changes("", nil)
	changes.Commit = s.revoking()
	s.join(part{
		groups: groups(httpuser.Group{Users: s.users, Directory: access.NewUsers(s.DB), Shows: s.shows,
			Statuses:       func() []string { return parameter.UserStatus.In(s.parameters.Set()).Values },
			HashesIdentity: s.HashesIdentity, Now: time.Now, Sessions: access.NewSessions(s.DB),
			TOTP: s.totps.Store, Devices: s.devices, Remembered: s.remembered,
			CountryName: geo.Name, Levels: levelNames(money.NewLevels(s.DB)),
			Profiles: &profile.Service{Users: s.users, Store: access.NewProfiles(s.DB), Changes: changes,
				Notices: s.starter, Now: time.Now}}),
		actions: []challenge.Action{user.VerifyEmailAction(), user.VideoKYCAction()},
	})

	s.geofilters = geofilter.NewCache(access.NewGeofilters(s.DB))
	countries := &geofilter.Service{Store: access.NewGeofilters(s.DB), Users: s.users, Commit: s.revoking(),
		Notices: s.starter, Now: time.Now}
	s.join(part{
		groups:    groups(httpgeofilter.Group{Service: countries, CDN: cmp.Or(s.cfg.Geo.CDNURL, s.publicURL)}),
		snapshots: []snapshot{copyOf(s.geofilters, change.Geofilter)},
		actions:   []challenge.Action{countries.AddAction(), countries.RemoveAction()},
	})

	s.allowedIPs = allowedip.NewCache(access.NewAllowedIPs(s.DB))
	s.join(part{snapshots: []snapshot{copyOf(s.allowedIPs, change.AllowedIPs)}})

	addresses, err := address.NewRules(s.cfg.AddressBook.AddressRules)
	if err != nil {
		return err
	}
	s.join(part{groups: groups(httpaddressbook.Group{Service: &addressbook.Service{
		Store: money.NewAddressBooks(s.DB), Changes: s.changes("", nil), Currencies: s.currencies, Rules: addresses,
		Waiting: s.cfg.AddressBook.WaitingTime}})})
	return nil
}

// passkeys are for the domain of the public URL, and named like the authenticator codes.
func (s *service) passkeys() *device.Passkeys {
	p, _ := passkey.NewParty(s.publicURL, s.cfg.MFA.TOTPIssuer, s.cfg.WebAuthn.Origins) // the URL was validated
	return &device.Passkeys{Store: access.NewPasskeys(s.DB), Party: p, RefuseFalls: s.cfg.WebAuthn.Counter != "report"}
}

func geoPolicy(c config.Config) geo.Policy {
	return geo.Policy{AllowPrivate: c.Geo.AllowPrivate, AllowUnknown: c.Geo.AllowUnknown}
}

// levelNames lists the levels in the form of the users section.
func levelNames(levels level.Store) func(context.Context) ([]httpuser.LevelName, error) {
	return func(ctx context.Context) ([]httpuser.LevelName, error) {
		all, err := levels.List(ctx, level.Query{})
		return rest.Each(all, func(l level.Level) httpuser.LevelName {
			return httpuser.LevelName{ID: int(l.ID), Label: l.Label}
		}), err
	}
}
