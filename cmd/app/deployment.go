package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/currency"
	"castellan/domain/office/contract"
	"castellan/domain/people/dropdown"
	"castellan/domain/people/identity"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/stepup"
	httpapi "castellan/http"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/people"
	"castellan/persistence/permit"
)

// connectTime is how long to wait for a database that does not answer: one that is started together with the service
// needs some time.
const connectTime = 20 * time.Second

// opened opens the database as soon as it answers, and runs the startup steps under its lock, from the beginning if the
// database was lost in between. Any other error, or an error of an embedded database, is returned at once.
func opened(ctx context.Context, cfg config.Config, options persistence.Options, setUp func(context.Context,
	*persistence.DB) error) (*persistence.DB, error) {
	patience := time.Now().Add(connectTime)
	if _, embedded := cfg.Database.SQLitePath(); embedded {
		patience = time.Time{}
	}
	options.MaxConns, options.Patient = cfg.Database.MaxConnections, true
	for waits := false; ; waits = true {
		db, err := persistence.Open(ctx, cfg.Database.URL.Reveal(), options)
		if err == nil {
			var unfinished bool
			if unfinished, err = db.Unfinished(ctx); unfinished {
				err = persistence.ErrUnfinished
			}
			if err == nil {
				err = db.Exclusive(ctx, func(ctx context.Context) error { return setUp(ctx, db) })
			}
			if err == nil {
				return db, nil
			}
			err = errors.Join(err, db.Close())
		}
		if fault.CodeOf(err) != fault.Unavailable || time.Now().After(patience) {
			return nil, err
		}
		if !waits {
			slog.Warn("the database does not answer; waiting for it", "for", connectTime, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// OpenDatabase opens the database, migrates it to this version, and returns the migrations that it applied.
func OpenDatabase(ctx context.Context, cfg config.Config) (db *persistence.DB, applied []string, err error) {
	db, err = opened(ctx, cfg, persistence.Options{}, func(ctx context.Context, db *persistence.DB) (err error) {
		applied, err = persistence.Migrate(ctx, db)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	built, err := persistence.BuildIndexes(ctx, db)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, append(applied, built...), nil
}

// Deployment is an open deployment: its database, migrated and seeded, and its keys.
type Deployment struct {
	DB     *persistence.DB
	Keeper *keyring.Keeper
	Ring   *keyring.Ring
	// logins are the accounts that the seed of development mode created, on the very first start.
	logins []login
}

// Open opens everything that commands and the service share. Migrations, keys and seeds are made under one lock, so
// several nodes may start at once, and each seed in one transaction with its marker. A statement may take 30 s, until
// DB.EndPatience; a wait is logged.
func Open(ctx context.Context, cfg config.Config) (*Deployment, error) {
	return OpenWith(ctx, cfg, persistence.Options{})
}

// OpenExisting is Open for a command that is of no use on a new database: it creates no file at a misspelled path.
func OpenExisting(ctx context.Context, cfg config.Config) (*Deployment, error) {
	return openExisting(ctx, cfg, persistence.Options{})
}

func openExisting(ctx context.Context, cfg config.Config, o persistence.Options) (*Deployment, error) {
	if file, embedded := cfg.Database.SQLitePath(); embedded {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("there is no database: %w", err)
		}
	}
	return OpenWith(ctx, cfg, o)
}

// OpenWith is Open with the clock and the trace of the options.
func OpenWith(ctx context.Context, cfg config.Config, o persistence.Options) (*Deployment, error) {
	var v *Deployment
	_, err := opened(ctx, cfg, o, func(ctx context.Context, db *persistence.DB) error {
		v = &Deployment{DB: db}
		return v.setUp(ctx, cfg)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (v *Deployment) setUp(ctx context.Context, cfg config.Config) error {
	if _, err := persistence.Migrate(ctx, v.DB); err != nil {
		return err
	}
	_, embedded := cfg.Database.SQLitePath()
	keeper, err := keyring.Open(ctx, kit.NewKeys(v.DB), cfg.Keys.MasterFile, embedded || cfg.Dev, time.Now)
	if err != nil {
		return err
	}
	v.Keeper, v.Ring = keeper, keeper.Ring()
	persistence.Start(v.DB, v.Ring.Audit(), id.New(time.Now()))
	parameters := kit.NewParameters(v.DB)
	if err := v.DB.InTx(ctx, func(ctx context.Context) error { return parameter.Seed(ctx, parameters) }); err != nil {
		return fmt.Errorf("seed parameters: %w", err)
	}
	for _, once := range []struct {
		name string
		seed func(context.Context) error
	}{
		{"mfa", func(ctx context.Context) error {
			_, err := v.DB.Once(ctx, newDatabase, func(ctx context.Context) error { return mfa.Seed(ctx, factor.NewMFA(v.DB)) })
			return err
		}},
		{"currency", func(ctx context.Context) error { return currency.Seed(ctx, money.NewCurrencies(v.DB)) }},
		{"explorers", func(ctx context.Context) error {
			return parameter.SeedExplorers(ctx, parameters, currency.Explorers)
		}},
		{"contract", func(ctx context.Context) error { return contract.Seed(ctx, office.NewContracts(v.DB)) }},
		{"dropdown", func(ctx context.Context) error { return dropdown.Seed(ctx, people.NewDropdowns(v.DB)) }},
	} {
		if _, err := v.DB.Once(ctx, once.name, once.seed); err != nil {
			return fmt.Errorf("seed %s: %w", once.name, err)
		}
	}
	err = v.DB.InTx(ctx, func(ctx context.Context) error {
		return resource.Sync(ctx, permit.NewResources(v.DB), httpapi.Table(), time.Now())
	})
	if err != nil {
		return fmt.Errorf("resource registry: %w", err)
	}
	if cfg.Dev {
		return v.seedLogins(ctx, cfg)
	}
	return nil
}

// Close ends the writer after its queue is empty, and closes the database.
func (v *Deployment) Close() error { return v.DB.Close() }

// HashIdentity returns the keyed hash under which an identity number is stored.
func (v *Deployment) HashIdentity(number string) string {
	return v.Ring.StableHash(identity.HashDomain, number)
}

// HashesIdentity returns the hashes under which it may be found, the one of HashIdentity first.
func (v *Deployment) HashesIdentity(number string) []string {
	return append([]string{v.HashIdentity(number)}, v.Ring.Former(identity.HashDomain, number)...)
}

// TokenLife returns the longest time for which a token signed now is of use. That is the lifetime of x-auth and the
// time in which it can be renewed, or the lifetime of ot-auth, or of p-auth for the longest configured challenge.
func (v *Deployment) TokenLife(ctx context.Context, c config.Config) (time.Duration, error) {
	methods, err := factor.NewMFA(v.DB).Methods(ctx)
	if err != nil {
		return 0, err
	}
	longest := c.MFA.ChallengeTTL
	for _, m := range methods {
		longest = max(longest, time.Duration(m.ExpireMs)*time.Millisecond)
	}
	return max(c.Tokens.XAuthTTL+min(c.Sessions.Idle, c.Sessions.TTL), c.Tokens.OTAuthTTL, longest+c.MFA.PAuthGrace), nil
}

// Changes returns the changes of a command to records that nodes cache under a topic. The process of the command caches
// nothing.
func (d *Deployment) Changes(topic change.Topic) admin.Changes {
	return admin.Changes{Commit: d.DB, Now: time.Now, Topic: topic}
}

// changes returns the changes of a slice of this node. Other nodes are notified under the topic, and the copy of this
// node, unless it is nil, is updated.
func (s *service) changes(topic change.Topic, copy copies) admin.Changes {
	c := admin.Changes{Commit: s.commit, Now: time.Now, Topic: topic}
	if copy != nil {
		c.Follow = copy.Follow
	}
	return c
}

// Operate commits writes of the operator together with their audit row and a note. what names the action, the target,
// the account and the detail of the row.
func (d *Deployment) Operate(ctx context.Context, topic change.Topic, what audit.Record, writes ...commit.Write) error {
	done := admin.Done{Target: what.Target, UserID: what.UserID, Detail: what.Detail, Writes: writes}
	return d.Changes(topic).Do(ctx, audit.Operator, what.Action, func(context.Context) (admin.Done, error) {
		return done, nil
	})
}

// Notices creates notices to owners for a command; a running node delivers them.
func (d *Deployment) Notices(cfg config.Config) (challenge.Notices, error) {
	book, err := message.NewBook(httpapi.Title, nil)
	if err != nil {
		return nil, err
	}
	channels, err := adapters.Senders(cfg, nil, d.Ring.VAPIDs)
	return &stepup.Messenger{Config: stepupConfig(cfg), Book: book, Ring: d.Ring, Dispatch: offered(channels),
		Now: time.Now}, err
}

// offered is a Dispatcher that lists the channels and delivers nothing.
type offered map[message.Channel]message.Sender

func (o offered) Offers(c message.Channel) bool { return o[c] != nil }

func (offered) Deliver(outbox.Message, message.Rendered) {}
