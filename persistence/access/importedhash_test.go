package access_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/access/password"
	"castellan/domain/access/password/legacy"
	"castellan/domain/access/user"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// Recipes are recorded once, and forgotten together when the last account has a hash of this service.
func TestRecipesOfImportedHashes(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx, now := access.NewImportedHashes(db), t.Context(), time.UnixMilli(1_700_000_000_000)
		bcrypt := legacy.Recipe{Alg: legacy.Bcrypt, Cost: 10}
		digest := legacy.Recipe{Alg: legacy.Digest, Function: "md5", Variant: legacy.SaltFirst}
		has := func(want bool, recipes ...legacy.Recipe) {
			t.Helper()
			got, err := s.HasImported(ctx)
			list, errList := s.Recipes(ctx)
			storetest.Must(t, err)
			storetest.Must(t, errList)
			if got != want || fmt.Sprint(list) != fmt.Sprint(recipes) {
				t.Errorf("has %v, %v; want %v, %v", got, list, want, recipes)
			}
		}
		has(false)
		imported := "$imported$bcrypt$r=10$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY"
		for i, hash := range []string{imported, "$argon2id$v=19$m=64,t=1,p=1$x$y", ""} {
			u := user.New(fmt.Sprint("u", i), now)
			u.Email = fmt.Sprintf("u%d@example.test", i)
			storetest.Must(t, db.Commit(ctx, user.Add{User: u, PasswordHash: hash}, password.UseRecipe{Recipe: bcrypt, At: now},
				password.UseRecipe{Recipe: digest, At: now}))
		}
		has(true, bcrypt, digest)
		retired := password.RetireRecipes{Before: now.Add(time.Millisecond)}
		storetest.Must(t, db.Commit(ctx, retired))
		has(true, bcrypt, digest)
		storetest.Must(t, db.Commit(ctx, user.Rehash{UserID: "u0", Old: imported, New: "$argon2id$x"}))
		has(false, bcrypt, digest)
		storetest.Must(t, db.Commit(ctx, password.RetireRecipes{Before: now})) // they are in use since now
		has(false, bcrypt, digest)
		storetest.Must(t, db.Commit(ctx, retired))
		has(false)
	})
}
