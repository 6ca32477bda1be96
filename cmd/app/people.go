package app

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/money/blockage"
	"castellan/domain/money/transaction"
	"castellan/domain/office/contract"
	"castellan/domain/people/bootstrap"
	"castellan/domain/people/identity"
	"castellan/domain/people/kyc"
	"castellan/domain/people/registration"
	"castellan/domain/people/standing"
	"castellan/http/auth"
	httpblockage "castellan/http/money/blockage"
	httpbootstrap "castellan/http/people/bootstrap"
	httpidentity "castellan/http/people/identity"
	httpinbox "castellan/http/people/inbox"
	httpintegration "castellan/http/people/integration"
	httpkyc "castellan/http/people/kyc"
	httpregistration "castellan/http/people/registration"
	httpstanding "castellan/http/people/standing"
	"castellan/http/rest"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/permit"
	"castellan/persistence/proof"
	"castellan/persistence/session"
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
		Language: s.cfg.Language.Default, Notify: s.starter.Notify}
	s.papers.Follows = decisions.Reopens
	s.join(part{groups: groups(httpkyc.Group{Service: decisions})})

	s.identities = &identity.Service{Store: people.NewIdentities(s.DB), Users: s.users,
		Options: people.NewDropdowns(s.DB), Values: s.parameters.Set, Changes: s.changes("", nil), Ring: s.Ring,
		Hashes: s.HashesIdentity, Tries: s.tries(password.Limit(wrongPersons, wrongPersonsWindow)),
		Accounts: c.AccountsPerIdentity, Refresh: s.logins.Refresh, Dev: s.cfg.Dev}
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

// eventLife is how long other services may read an event.
const eventLife = 90 * 24 * time.Hour

// registration builds the sign-up of users.
func (s *service) registration(agreed *contract.Service) {
	signups := &registration.SignUps{Users: s.users, Contracts: agreed.Store, Engine: s.starter, First: s.logins.First,
		Hasher: s.hasher, Policy: PasswordPolicy(s.cfg), Commit: s.commit, Place: placeOf(s.cfg.Limits), Now: time.Now}
	if l := s.cfg.Limits; l.Enabled {
		bound := func(n int, window time.Duration) *password.Guards { return s.tries(password.Limit(n, window)) }
		signups.Starts = &registration.Bounds{Networks: bound(l.ResetPerIP, l.ResetIPWindow),
			Phones: bound(l.ResetPerPhone, l.ResetPhoneWindow), // The caps of messages count an address for each phone number.
			Mails:  bound(l.ResetPerPhone, max(l.ResetPhoneWindow, time.Hour))}
	}
	s.signups = httpregistration.Group{Service: signups, Contracts: agreed, Enabled: s.cfg.Registration.Enabled}
	s.join(part{groups: groups(s.signups), actions: []challenge.Action{signups.Action()}})
}

// Bootstrap returns the part of the setup link that a command needs.
func (d *Deployment) Bootstrap() *bootstrap.Service {
	store := people.NewBootstrap(d.DB)
	changes := d.Changes(change.Users)
	changes.Lock = store.Lock
	return &bootstrap.Service{Store: store, Users: account.NewUsers(d.DB), Ring: d.Ring, Changes: changes, Now: time.Now}
}

// bootstrap builds the page of the setup link.
func (s *service) bootstrap() {
	b := s.Bootstrap()
	b.Changes.Commit, b.Hasher, b.Party, b.Log = s.commit, s.hasher, s.devices.Passkeys.Party, s.log
	b.Policy, b.Issuer = PasswordPolicy(s.cfg), s.cfg.MFA.TOTPIssuer
	b.Tries = s.tries(password.Limit(bootstrap.Requests, bootstrap.Window))
	s.join(part{groups: groups(httpbootstrap.Group{Service: b})})
}

// adviseSetup logs the command that makes the first administrator, while production mode has none. It never logs a
// link.
func adviseSetup(ctx context.Context, cfg config.Config, d *Deployment, log *slog.Logger) error {
	if cfg.Dev {
		return nil
	}
	exists, err := bootstrap.Exists(ctx, account.NewUsers(d.DB))
	if err == nil && !exists {
		log.Warn("no administrator exists; run the command and open the link that it prints",
			"command", "castellan setup-link")
	}
	return err
}

// knownClient reports whether an account used the client of a completed challenge before an instant: its session, or a
// registered device that signed the approval.
func (s *service) knownClient(ctx context.Context, c challenge.Challenge, before time.Time) (bool, error) {
	seen := func(userID string, at time.Time, err error) (bool, error) {
		if fault.CodeOf(err) == fault.RecordNotFound {
			return false, nil
		}
		return err == nil && userID == c.UserID && at.Before(before), err
	}
	of, err := session.NewSessions(s.DB).Get(ctx, c.UserID, c.Starter.SessionID, time.Now())
	if known, err := seen(of.UserID, of.CreatedAt, err); known || err != nil {
		return known, err
	}
	for _, m := range c.CompletedMethods() {
		if m.Proof == nil {
			continue
		}
		d, err := proof.NewDevices(s.DB).Get(ctx, m.Proof.DeviceID)
		if known, err := seen(d.UserID, d.CreatedAt, err); known || err != nil {
			return known, err
		}
	}
	return false, nil
}

// owner returns the user of an x-auth token or of a token of guard.issuers, and the starter of a challenge that another
// service starts for that user. The challenge ends with the session of an x-auth, which has the address and the device.
func (s *service) owner(ctx context.Context, who rest.Caller, userToken string) (string, challenge.Starter, error) {
	guards := s.guards()
	if of, ok, err := s.foreignBearer(ctx, userToken); ok || err != nil {
		if err == nil {
			err = guards.Represented(who, of.UserID, nil)
		}
		from := auth.From(who)
		from.SessionID, from.Login = of.Session, of.Login // the address and the device are those of the service
		return of.UserID, from, err
	}
	c, err := guards.Session(ctx, userToken)
	if err != nil {
		return "", challenge.Starter{}, err
	}
	of, err := session.NewSessions(s.DB).Get(ctx, c.Subject, c.SessionID, time.Now())
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.TokenRevoked, "the session has ended")
	}
	if err == nil {
		ip, _ := netip.ParseAddr(of.IP)
		err = guards.Represented(who, c.Subject, &auth.Origin{IP: ip, Country: of.Country})
	}
	from := auth.From(who)
	from.SessionID, from.IP, from.Country = of.ID, of.IP, of.Country
	from.Brand, from.Model, from.Description = of.Brand, of.Model, of.Description
	return c.Subject, from, err
}

// integration builds the interface for the platform's other services, except for the areas whose records they deliver.
func (s *service) integration() error {
	s.external = kit.NewIntegration(s.DB)
	brought := &registration.Service{Users: s.users, External: s.external, Jobs: s.jobs, Changes: s.changes("", nil)}
	s.join(part{
		groups: groups(httpintegration.Events{Store: s.external}, httpintegration.Users{Service: brought}),
		kinds:  []job.Kind{brought.Kind()},
		purge:  after(eventLife, s.external.PurgeEvents),
	})
	s.join(searchPart(account.NewUsers(s.DB), people.NewCorporate(s.DB)))
	return nil
}

// standings builds the restrictions on accounts and money.
func (s *service) standings() error {
	blockages := &blockage.Service{Store: money.NewBlockages(s.DB), Ledger: s.ledger, Users: s.users,
		Currencies: s.currencies, Now: time.Now}
	store := people.NewStandings(s.DB)
	service := &standing.Service{Store: store, Users: s.users, Blockages: blockages,
		Administrators: permit.NewResources(s.DB), Dev: s.cfg.Dev, Parameters: s.parameters,
		Ignored: kit.NewParameters(s.DB), Changes: s.changes(change.Parameters, s.parameters),
		ClosureType: int64(s.cfg.Blockage.ClosureType)}
	service.Changes.Lock, service.Claims = store.Lock, s.external
	service.Hold = transaction.HoldQueued(s.jobs)
	s.join(part{groups: groups(httpblockage.Group{Service: blockages}, httpstanding.Group{Service: service},
		httpinbox.Group{Store: people.NewInbox(s.DB), Shows: s.shows},
		httpintegration.Findings{Service: service})})
	return nil
}

// searchJob is the kind of the job that prepares the names and numbers of accounts and companies for searches. They
// come from earlier versions, and from nodes of one that run beside this one.
const searchJob = "user-search"

const (
	searchEvery = 10 * time.Minute
	freshEvery  = 2 * time.Second // new and changed accounts; a search finds the newest thousand before
	foldBatch   = 200
)

func searchPart(users account.Users, companies people.Corporate) part {
	fold := func(ctx context.Context) (int, error) {
		n, err := users.FoldWaiting(ctx, foldBatch)
		if err != nil || n > 0 {
			return n, err
		}
		return companies.FoldWaiting(ctx, foldBatch)
	}
	return part{
		kinds: []job.Kind{{Name: searchJob, Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
			n, err := fold(ctx)
			if j.Done += int64(n); n == 0 && err == nil {
				j.Total, j = j.Done, j.Finish("")
			}
			return j, nil, err
		}}},
		schedules: []job.Schedule{{Kind: searchJob, Every: searchEvery}},
		tasks: []task{{freshEvery, "the search of accounts could not be updated", func(ctx context.Context) error {
			_, err := users.FoldWaiting(ctx, foldBatch)
			return err
		}}},
	}
}
