package app

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/account/password/argon2id"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/change"
	"castellan/domain/kit/client"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/level"
	"castellan/domain/proof/device"
	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	"castellan/domain/session/allowedip"
	"castellan/domain/session/geofilter"
	"castellan/domain/session/profile"
	httpuser "castellan/http/account/user"
	httpaddressbook "castellan/http/money/addressbook"
	httpdevice "castellan/http/proof/device"
	httptotp "castellan/http/proof/totp"
	"castellan/http/rest"
	httpgeofilter "castellan/http/session/geofilter"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/money"
	"castellan/persistence/proof"
	sessionstore "castellan/persistence/session"
)

func (s *service) hasherMetrics(m *metrics.Registry) {
	m.Info("castellan_password_hash_info", "Instructions that password hashes use: avx512, avx2 or go.", "vectors",
		argon2id.Vectors())
	m.Gauge("castellan_password_hash_slots", "Maximum number of concurrent password hashes.",
		func() float64 { return float64(s.hasher.Slots()) })
	m.Gauge("castellan_password_hashing", "Password hashes that run.",
		func() float64 { return float64(s.hasher.Running()) })
	m.Gauge("castellan_password_waiting", "Logins waiting for a hash slot.",
		func() float64 { return float64(s.hasher.Waiting()) })
	m.Counter("castellan_password_work_units_total", "Work of all password hashes, in work units.",
		func() int64 { return int64(s.hasher.Work()) })
	m.Counter("castellan_password_refused_total", "Logins refused because no hash slot became free in time.",
		s.hasher.Refused)
}

// placeOf returns the group of clients that share slots in the queue of hashes. Trusted networks, and all clients in a
// load test, have no limit.
func placeOf(l config.Limits) func(client.Origin) string {
	return func(from client.Origin) string {
		ip := from.Addr.Unmap()
		if !l.Enabled || slices.ContainsFunc(l.ExemptCIDRs, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			return ""
		}
		return from.Site
	}
}

func guardRules(c config.Config) password.GuardRules {
	r := password.DefaultGuardRules()
	r.Wait = c.Password.QueueWait
	r.PerRegion = max(r.PerRegion, c.Limits.WrongPasswords)
	r.PerPrefix, r.Window, r.Total = c.Limits.WrongPasswords, c.Limits.WrongPasswordWindow, c.Limits.WrongPasswordsDay
	return r
}

// PasswordPolicy returns the rules of new passwords.
func PasswordPolicy(c config.Config) password.Policy {
	return password.Policy{MinChars: c.Password.MinLength, MaxChars: c.Password.MaxLength}
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
	s.totps = &totp.Service{Store: proof.NewTOTP(s.DB), Users: s.users,
		Budgets: factor.NewChallenges(s.DB), Commit: s.commit, Ring: s.Ring, Notices: s.starter, Rules: rules(s.cfg),
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

	devices := proof.NewDevices(s.DB)
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
		purge: after(0, devices.Purge),
	})

	changes := s.changes("", nil)
	changes.Commit = s.revoking()
	s.join(part{
		groups: groups(httpuser.Group{Users: s.users, Directory: account.NewUsers(s.DB), Shows: s.shows,
			Statuses:       func() []string { return parameter.UserStatus.In(s.parameters.Set()).Values },
			HashesIdentity: s.HashesIdentity, Now: time.Now, Sessions: sessionstore.NewSessions(s.DB),
			TOTP: s.totps.Store, Devices: s.devices, Remembered: s.remembered,
			CountryName: geo.Name, Levels: levelNames(money.NewLevels(s.DB)),
			Profiles: &profile.Service{Users: s.users, Store: sessionstore.NewProfiles(s.DB), Changes: changes,
				Notices: s.starter, Now: time.Now, Devices: s.devices, TOTP: s.totps.Store}}),
		actions: []challenge.Action{user.VerifyEmailAction(), user.VideoKYCAction()},
	})

	s.geofilters = geofilter.NewCache(sessionstore.NewGeofilters(s.DB))
	countries := &geofilter.Service{Store: sessionstore.NewGeofilters(s.DB), Users: s.users, Commit: s.revoking(),
		Notices: s.starter, Now: time.Now}
	s.join(part{
		groups:    groups(httpgeofilter.Group{Service: countries, CDN: cmp.Or(s.cfg.Geo.CDNURL, s.publicURL)}),
		snapshots: []snapshot{copyOf(s.geofilters, change.Geofilter)},
		actions:   []challenge.Action{countries.AddAction(), countries.RemoveAction()},
	})

	s.allowedIPs = allowedip.NewCache(sessionstore.NewAllowedIPs(s.DB))
	s.join(part{snapshots: []snapshot{copyOf(s.allowedIPs, change.AllowedIPs)}})

	addresses, err := address.NewRules(s.cfg.AddressBook.AddressRules)
	if err != nil {
		return err
	}
	s.join(part{groups: groups(httpaddressbook.Group{Service: &addressbook.Service{
		Store: money.NewAddressBooks(s.DB), Changes: s.changes("", nil), Currencies: s.currencies, Rules: addresses,
		Tags:    s.cfg.AddressBook.TagRules,
		Waiting: s.cfg.AddressBook.WaitingTime}})})
	return nil
}

// passkeys are for the domain of the public URL, and named like the authenticator codes.
func (s *service) passkeys() *device.Passkeys {
	p, _ := passkey.NewParty(s.publicURL, s.cfg.MFA.TOTPIssuer, s.cfg.WebAuthn.Origins) // the URL was validated
	return &device.Passkeys{Store: factor.NewPasskeys(s.DB), Party: p, RefuseFalls: s.cfg.WebAuthn.Counter != "report",
		Backup: device.Backup(s.cfg.WebAuthn.Backup), Settle: s.cfg.WebAuthn.Settle}
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
