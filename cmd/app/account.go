package app

import (
	"cmp"
	"context"
	"time"

	"castellan/config"
	"castellan/domain/addressbook"
	"castellan/domain/addressbook/address"
	"castellan/domain/allowedip"
	"castellan/domain/challenge"
	"castellan/domain/challenge/stepup"
	"castellan/domain/change"
	"castellan/domain/device"
	"castellan/domain/geo"
	"castellan/domain/geofilter"
	"castellan/domain/parameter"
	"castellan/domain/profile"
	"castellan/domain/totp"
	"castellan/domain/user"
	httpaddressbook "castellan/http/addressbook"
	httpdevice "castellan/http/device"
	httpgeofilter "castellan/http/geofilter"
	httptotp "castellan/http/totp"
	httpuser "castellan/http/user"
	"castellan/persistence/access"
	"castellan/persistence/money"
)

// accounts builds what an account has: its profile, its factors, where it may be
// used from, and its withdrawal addresses.
func (s *service) accounts() error {
	changes := s.changes("", nil)
	changes.Commit = s.revoking()
	s.join(part{
		groups: groups(httpuser.Group{Users: s.users, Directory: access.NewUsers(s.DB),
			Statuses:       func() []string { return parameter.UserStatus.In(s.parameters.Set()).Values },
			HashesIdentity: s.HashesIdentity, Now: time.Now, Sessions: access.NewSessions(s.DB),
			CountryName: geo.Name, Levels: money.NewLevels(s.DB),
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

	s.geofilters = geofilter.NewLive(access.NewGeofilters(s.DB))
	countries := &geofilter.Service{Store: access.NewGeofilters(s.DB), Users: s.users, Commit: s.revoking(),
		Notices: s.starter, Now: time.Now}
	s.join(part{
		groups:    groups(httpgeofilter.Group{Service: countries, CDN: cmp.Or(s.cfg.Geo.CDNURL, s.publicURL)}),
		snapshots: []snapshot{copyOf(s.geofilters, change.Geofilter)},
		actions:   []challenge.Action{countries.AddAction(), countries.RemoveAction()},
	})

	s.allowedIPs = allowedip.NewLive(access.NewAllowedIPs(s.DB))
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
