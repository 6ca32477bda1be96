package app

import (
	"context"
	"time"

	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/kit/change"
	"castellan/domain/kit/parameter"
	"castellan/domain/people/intake"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/proof"
)

// hashCensusEvery is the time between two looks of a node at the age of the last count of hashes.
const hashCensusEvery = 10 * time.Minute

// hashKinds is the part of the kinds of password hashes: an identifier without an account takes the time of a kind that
// accounts have (D-AUTH-19).
func (s *service) hashKinds() part {
	counter := &password.Counter{Store: account.NewHashKinds(s.DB), Commit: s.commit, Hasher: s.hasher,
		Keep: s.cfg.Password.ImportKeep, Now: time.Now}
	return part{
		snapshots: []snapshot{{topic: change.Hashes, load: counter.Load,
			follow: func(ctx context.Context, _ ...string) error { return counter.Load(ctx) }}},
		tasks: []task{{hashCensusEvery, "password hashes could not be counted", counter.Run}},
	}
}

// Intake imports and exports the users of an open deployment.
func (v *Deployment) Intake(ctx context.Context, cfg config.Config) (*intake.Service, error) {
	hasher, err := NewHasher(cfg)
	if err != nil {
		return nil, err
	}
	parameters := parameter.NewCache(kit.NewParameters(v.DB))
	if err := parameters.Reload(ctx); err != nil {
		return nil, err
	}
	return &intake.Service{Store: people.NewIntake(v.DB), Commit: v.DB, Hasher: hasher, Ring: v.Ring,
		Users: account.NewUsers(v.DB), TOTP: proof.NewTOTP(v.DB),
		Statuses: parameter.UserStatus.In(parameters.Set()).Values, Now: time.Now,
		MaxCost: uint64(cfg.Password.ImportMaxCost)}, nil
}
