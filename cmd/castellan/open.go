package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/config"
	"castellan/domain/id"
	"castellan/domain/keyring"
	"castellan/domain/mfa"
	"castellan/persistence"
)

// openDatabase opens and migrates the database.
func openDatabase(e *env) (*persistence.DB, []string, error) {
	db, err := persistence.Open(e.ctx, e.cfg.Database.URL.Reveal(), persistence.Options{MaxConns: e.cfg.Database.MaxConnections})
	if err != nil {
		return nil, nil, err
	}
	var applied []string
	err = db.Exclusive(e.ctx, func(ctx context.Context) (err error) {
		applied, err = db.Migrate(ctx)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, applied, nil
}

// vault is an open deployment: its database, migrated and seeded, and its keys.
type vault struct {
	db     *persistence.DB
	keeper *keyring.Keeper
	ring   *keyring.Ring
	// logins is what the seed of development mode made, on the very first start.
	logins []login
}

// openVault opens everything that commands and the service share. Migrations,
// keys and seeds are made under one lock, so that several nodes may start at
// once, and each seed in one transaction with its marker.
func openVault(e *env) (*vault, error) {
	db, err := persistence.Open(e.ctx, e.cfg.Database.URL.Reveal(), persistence.Options{MaxConns: e.cfg.Database.MaxConnections})
	if err != nil {
		return nil, err
	}
	v := &vault{db: db}
	if err := db.Exclusive(e.ctx, func(ctx context.Context) error { return v.setUp(ctx, e) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return v, nil
}

func (v *vault) setUp(ctx context.Context, e *env) error {
	if _, err := v.db.Migrate(ctx); err != nil {
		return err
	}
	_, embedded := e.cfg.Database.SQLitePath()
	keeper, err := keyring.Open(ctx, persistence.NewKeys(v.db), e.cfg.Keys.MasterFile, embedded || e.cfg.Dev, time.Now)
	if err != nil {
		return err
	}
	v.keeper, v.ring = keeper, keeper.Ring()
	v.db.Start(v.ring.Audit(), id.New(time.Now()))
	store := persistence.NewMFA(v.db)
	if _, err := v.db.Once(ctx, "mfa", func(ctx context.Context) error { return mfa.Seed(ctx, store) }); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	if e.cfg.Dev {
		return v.seedLogins(ctx, e)
	}
	return nil
}

func (v *vault) close() error { return v.db.Close() }

// tokenLife is the longest life of a token signed now: that of x-auth, or of
// p-auth for the longest challenge that is configured.
func (v *vault) tokenLife(ctx context.Context, c config.Config) (time.Duration, error) {
	methods, err := persistence.NewMFA(v.db).Methods(ctx)
	if err != nil {
		return 0, err
	}
	longest := c.MFA.ChallengeTTL
	for _, m := range methods {
		longest = max(longest, time.Duration(m.ExpireMs)*time.Millisecond)
	}
	return max(c.Tokens.XAuthTTL, longest+c.MFA.PAuthGrace), nil
}
