package app

import (
	"context"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/domain/access/password"
	"castellan/domain/access/user"
	"castellan/domain/people/identity"
	"castellan/domain/people/kyc"
	httpidentity "castellan/http/people/identity"
	httpkyc "castellan/http/people/kyc"
	"castellan/persistence/access"
	"castellan/persistence/money"
	"castellan/persistence/people"
)

// kyc builds the verification of accounts.
func (s *service) kyc() error {
	c := s.cfg.KYC
	decisions := &kyc.Service{Store: people.NewDecisions(s.DB), Users: s.users,
		Documents: s.papers.Store, Originals: s.papers, Pictures: s.pictures, Changes: s.changes("", nil),
		Types: kyc.Types{Front: int64(c.FrontType), Back: int64(c.BackType), Selfie: int64(c.SelfieType),
			Address: int64(c.AddressType)},
		Levels: money.NewLevels(s.DB), Values: s.parameters.Set,
		Checks:   func(ctx context.Context, u user.User) (identity.Checks, error) { return s.identities.Checks(ctx, u) },
		Language: s.cfg.Language.Default, Tell: s.starter.Tell}
	s.papers.Follows = decisions.Reopens
	s.join(part{groups: groups(httpkyc.Group{Service: decisions})})

	tries := password.NewGuards(access.NewPasswordGuards(s.DB), s.DB,
		password.Limit(wrongPersons, wrongPersonsWindow), time.Now)
	s.identities = &identity.Service{Store: people.NewIdentities(s.DB), Users: s.users,
		Options: people.NewDropdowns(s.DB), Values: s.parameters.Set, Changes: s.changes("", nil), Ring: s.Ring,
		Hashes: s.HashesIdentity, Tries: tries, Accounts: c.AccountsPerIdentity, Renew: s.logins.Renew,
		Dev: s.cfg.Dev}
	if c.IdentityURL != "" {
		register, err := adapters.Identity(s.cfg, func(err error) { s.log.Warn("the national register failed", "err", err) })
		if err != nil {
			return err
		}
		s.identities.Registry = register
	}
	s.join(part{groups: groups(httpidentity.Group{Service: s.identities})})
	return nil
}

// The number of failed checks of a user at the national register, and their period.
const (
	wrongPersons       = 5
	wrongPersonsWindow = 15 * time.Minute
)
