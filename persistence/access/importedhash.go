package access

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"castellan/domain/access/password"
	"castellan/domain/access/password/legacy"
	"castellan/persistence/engine"
)

// ImportedHashes keeps the recipes of the hashes of other login services.
type ImportedHashes struct{ db *engine.DB }

var _ password.RecipeStore = ImportedHashes{}

// NewImportedHashes returns the recipes kept in db.
func NewImportedHashes(db *engine.DB) ImportedHashes { return ImportedHashes{db} }

type recipeRow struct {
	bun.BaseModel `bun:"table:imported_hash"`

	Recipe string `bun:",pk"`
	UsedAt int64
}

// retireRow is the row of password.RetireRecipes.
type retireRow struct{ Before int64 }

// hasImported is the condition of the index users_imported.
const hasImported = "substr(password_hash, 1, 10) = '$imported$'"

// ImportedHashWrites are the writes of recipes.
var ImportedHashWrites = []engine.Kind{
	engine.Update("INSERT INTO imported_hash (recipe, used_at) SELECT v.recipe, v.used_at {FROM v} WHERE TRUE "+
		"ON CONFLICT (recipe) DO UPDATE SET used_at = excluded.used_at", func(w password.UseRecipe) recipeRow {
		return recipeRow{Recipe: w.Recipe.String(), UsedAt: engine.Millis(w.At)}
	}),
	engine.Update("DELETE FROM imported_hash {USING v} WHERE imported_hash.used_at < v.before "+
		"AND NOT EXISTS (SELECT 1 FROM users WHERE "+hasImported+")",
		func(w password.RetireRecipes) retireRow { return retireRow{engine.Millis(w.Before)} }),
}

// Recipes lists the recorded recipes.
func (s ImportedHashes) Recipes(ctx context.Context) ([]legacy.Recipe, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var texts []string
	err := s.db.Conn(ctx).NewSelect().Table("imported_hash").Column("recipe").Order("recipe").Scan(ctx, &texts)
	if err != nil {
		return nil, engine.Translate(err)
	}
	recipes := make([]legacy.Recipe, len(texts))
	for i, text := range texts {
		if recipes[i], err = legacy.ParseRecipe(text); err != nil {
			return nil, fmt.Errorf("imported hash: recipe: %w", err)
		}
	}
	return recipes, nil
}

// HasImported reports whether an account has an imported hash.
func (s ImportedHashes) HasImported(ctx context.Context) (has bool, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	err = s.db.Conn(ctx).NewSelect().ColumnExpr("EXISTS (SELECT 1 FROM users WHERE "+hasImported+")").Scan(ctx, &has)
	return has, engine.Translate(err)
}
