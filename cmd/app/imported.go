package app

import (
	"context"
	"time"

	"castellan/config"
	"castellan/domain/access/password"
	"castellan/domain/kit/change"
	"castellan/domain/kit/parameter"
	"castellan/domain/people/intake"
	"castellan/persistence/access"
	"castellan/persistence/kit"
	"castellan/persistence/people"
)

// retireEvery is the time between two checks whether accounts still have imported hashes. A node without recipes does
// not check.
const retireEvery = 10 * time.Minute

// importedHashes is the part of the hashes of other login services: while accounts have some, all logins take equally
// long (D-AUTH-19).
func (s *service) importedHashes(store password.RecipeStore) part {
	load := func(ctx context.Context) error {
		recipes, err := store.Recipes(ctx)
		if err == nil {
			s.hasher.SetImported(recipes)
		}
		return err
	}
	return part{
		snapshots: []snapshot{{topic: change.Hashes, load: load,
			follow: func(ctx context.Context, _ ...string) error { return load(ctx) }}},
		tasks: []task{{retireEvery, "parameters of imported hashes could not be removed", func(ctx context.Context) error {
			if !s.hasher.HasImported() {
				return nil
			}
			if has, err := store.HasImported(ctx); has || err != nil {
				return err
			}
			return s.commit.Commit(ctx, password.RetireRecipes{Before: time.Now().Add(-retireEvery)},
				change.Note{Topic: change.Hashes})
		}}},
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
		Users: access.NewUsers(v.DB), TOTP: access.NewTOTP(v.DB),
		Statuses: parameter.UserStatus.In(parameters.Set()).Values, Now: time.Now}, nil
}
