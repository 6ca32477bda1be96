package password

import (
	"context"
	"time"

	"castellan/domain/access/password/legacy"
)

// SaveGuard saves a guard. It is fenced by Guard.Version; 0 inserts.
type SaveGuard struct {
	Guard
	Until time.Time // from then on the row may be purged
}

func (SaveGuard) Table() string { return "password_guard" }

func (w SaveGuard) Fence() (string, int64) { return w.Key, w.Version }

// ClearGuard forgets every wrong try for an account, whatever the version of its row. Operators use it to unlock an
// account. The known prefixes stay known, so strangers who continue do not lock the owner out there. It creates no
// row.
type ClearGuard struct{ Key string }

func (ClearGuard) Table() string { return "password_guard" }

// Row returns the row that the write changes.
func (w ClearGuard) Row() string { return w.Key }

// ResetGuard replaces the guard of an account, whatever the version of its row. No try is counted, and Good is the
// only known prefix.
type ResetGuard struct {
	Key   string
	Good  Good
	Until time.Time // from then on the row may be purged
}

// ResetBy returns the guard of an account whose owner has replaced the password from a prefix.
func ResetBy(key, prefix string, now time.Time) ResetGuard {
	return ResetGuard{Key: key, Good: Good{Prefix: prefix, At: now.UnixMilli()},
		Until: now.Add(DefaultGuardRules().GoodFor)}
}

func (ResetGuard) Table() string { return "password_guard" }

// Row returns the row that the write changes.
func (w ResetGuard) Row() string { return w.Key }

// UseRecipe records that accounts have imported hashes of a recipe. Repeating it changes nothing but the instant.
type UseRecipe struct {
	Recipe legacy.Recipe
	At     time.Time
}

// Table names the table of the row.
func (UseRecipe) Table() string { return "imported_hash" }

// Row returns the row that the write changes.
func (w UseRecipe) Row() string { return w.Recipe.String() }

// RetireRecipes forgets every recipe that was last used before an instant, if no account has an imported hash any more.
// An import that commits at the same time uses its recipes later, so they stay.
type RetireRecipes struct{ Before time.Time }

// Table names the table of the rows.
func (RetireRecipes) Table() string { return "imported_hash" }

// RecipeStore reads the recipes of imported hashes. It is safe for concurrent use.
type RecipeStore interface {
	// Recipes lists the recorded recipes.
	Recipes(ctx context.Context) ([]legacy.Recipe, error)
	// HasImported reports whether an account has an imported hash.
	HasImported(ctx context.Context) (bool, error)
}

// GuardStore reads guards. Writes go through commit.Committer. It is safe for
// concurrent use.
type GuardStore interface {
	// Guard reads the guard of an account; Version is 0 when it has none.
	Guard(ctx context.Context, key string) (Guard, error)
	// Purge removes the rows that expired before the given instant, in batches if they are many.
	Purge(ctx context.Context, before time.Time) error
}
