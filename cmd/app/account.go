package app

import (
	"cmp"
	"context"
	"time"

	"castellan/config"
	"castellan/domain/access/allowedip"
	"castellan/domain/access/challenge"
	"castellan/domain/access/challenge/stepup"
	"castellan/domain/access/device"
	"castellan/domain/access/geofilter"
	"castellan/domain/access/profile"
	"castellan/domain/access/totp"
	"castellan/domain/access/user"
	"castellan/domain/kit/change"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/level"
	httpdevice "castellan/http/access/device"
	httpgeofilter "castellan/http/access/geofilter"
	httptotp "castellan/http/access/totp"
	httpuser "castellan/http/access/user"
	httpaddressbook "castellan/http/money/addressbook"
	"castellan/http/rest"
	"castellan/persistence/access"
	"castellan/persistence/money"
)

// accounts builds the parts of an account: its profile, its factors, its access restrictions, and its withdrawal
// addresses.
func (s *service) accounts() error {
	changes := s.changes("", nil)
	changes.Commit = s.revoking()
	s.join(part{
		groups: groups(httpuser.Group{Users: s.users, Directory: access.NewUsers(s.DB),
			Statuses:       func() []string { return parameter.UserStatus.In(s.parameters.Set()).Values },
			HashesIdentity: s.HashesIdentity, Now: time.Now, Sessions: access.NewSessions(s.DB),
			CountryName: geo.Name, Levels: levelNames(money.NewLevels(s.DB)),
			Profiles: &profile.Service{Users: s.users, Store: access.NewProfiles(s.DB), Changes: changes,
				Notices: s.starter, Now: time.Now}}),
		actions: []challenge.Action{user.VerifyEmailAction(), user.VideoKYCAction()},
	})

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
		Loopback: s.cfg.Dev, Now: time.Now, Log: s.log}
	s.starter.Devices, s.answerer.Devices = s.devices, s.devices
	s.join(part{
		groups:  groups(httpdevice.Group{Service: s.devices}),
		actions: []challenge.Action{s.devices.AddAction(), s.devices.RemoveAction()},
		purge:   func(ctx context.Context, old expiry) error { return devices.Purge(ctx, old.now) },
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
