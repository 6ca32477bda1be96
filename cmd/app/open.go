package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"castellan/config"
	"castellan/domain/currency"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/domain/keyring"
	"castellan/domain/mfa"
	"castellan/domain/resource"
	httpapi "castellan/http"
	"castellan/persistence"
)

// connectTime is how long a database that does not answer is waited for: one
// that is started together with the service needs a moment.
const connectTime = 20 * time.Second

// connect opens the database as soon as it answers. What is wrong in any other
// way is told at once.
func connect(ctx context.Context, cfg config.Config) (*persistence.DB, error) {
	patience, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for waits := false; ; waits = true {
		db, err := persistence.Open(patience, cfg.Database.URL.Reveal(), persistence.Options{MaxConns: cfg.Database.MaxConnections})
		if fault.CodeOf(err) != fault.Unavailable {
			return db, err
		}
		if !waits {
			slog.Warn("the database does not answer; waiting for it", "for", connectTime, "err", err)
		}
		select {
		case <-patience.Done():
			return nil, cmp.Or(ctx.Err(), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// OpenDatabase opens the database, brings it to this version, and names the
// migrations that it applied.
func OpenDatabase(ctx context.Context, cfg config.Config) (*persistence.DB, []string, error) {
	db, err := connect(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	var applied []string
	err = db.Exclusive(ctx, func(ctx context.Context) (err error) {
		applied, err = db.Migrate(ctx)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, applied, nil
}

// Vault is an open deployment: its database, migrated and seeded, and its keys.
type Vault struct {
	DB     *persistence.DB
	Keeper *keyring.Keeper
	Ring   *keyring.Ring
	// logins is what the seed of development mode made, on the very first start.
	logins []login
}

// Open opens everything that commands and the service share. Migrations,
// keys and seeds are made under one lock, so that several nodes may start at
// once, and each seed in one transaction with its marker.
func Open(ctx context.Context, cfg config.Config) (*Vault, error) {
	db, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	v := &Vault{DB: db}
	if err := db.Exclusive(ctx, func(ctx context.Context) error { return v.setUp(ctx, cfg) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return v, nil
}

func (v *Vault) setUp(ctx context.Context, cfg config.Config) error {
	if _, err := v.DB.Migrate(ctx); err != nil {
		return err
	}
	_, embedded := cfg.Database.SQLitePath()
	keeper, err := keyring.Open(ctx, persistence.NewKeys(v.DB), cfg.Keys.MasterFile, embedded || cfg.Dev, time.Now)
	if err != nil {
		return err
	}
	v.Keeper, v.Ring = keeper, keeper.Ring()
	v.DB.Start(v.Ring.Audit(), id.New(time.Now()))
	store := persistence.NewMFA(v.DB)
	if _, err := v.DB.Once(ctx, "mfa", func(ctx context.Context) error { return mfa.Seed(ctx, store) }); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	currencies := persistence.NewCurrencies(v.DB)
	if _, err := v.DB.Once(ctx, "currency", func(ctx context.Context) error { return currency.Seed(ctx, currencies) }); err != nil {
		return fmt.Errorf("seed currencies: %w", err)
	}
	err = v.DB.InTx(ctx, func(ctx context.Context) error {
		return resource.Sync(ctx, persistence.NewResources(v.DB), httpapi.Table(), time.Now())
	})
	if err != nil {
		return fmt.Errorf("resource registry: %w", err)
	}
	if cfg.Dev {
		return v.seedLogins(ctx, cfg)
	}
	return nil
}

// Close ends the writer after what is queued, and closes the database.
func (v *Vault) Close() error { return v.DB.Close() }

// TokenLife is the longest life of a token signed now: that of x-auth, of
// ot-auth, or of p-auth for the longest challenge that is configured.
func (v *Vault) TokenLife(ctx context.Context, c config.Config) (time.Duration, error) {
	methods, err := persistence.NewMFA(v.DB).Methods(ctx)
	if err != nil {
		return 0, err
	}
	longest := c.MFA.ChallengeTTL
	for _, m := range methods {
		longest = max(longest, time.Duration(m.ExpireMs)*time.Millisecond)
	}
	return max(c.Tokens.XAuthTTL, c.Tokens.OTAuthTTL, longest+c.MFA.PAuthGrace), nil
}
