package persistence

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/password/replace"
	"castellan/persistence/engine"
)

// ResetTokens implements replace.Store.
type ResetTokens struct{ db *DB }

var _ replace.Store = ResetTokens{}

// NewResetTokens returns the one-time tokens kept in db.
func NewResetTokens(db *DB) ResetTokens { return ResetTokens{db} }

type resetTokenRow struct {
	bun.BaseModel `bun:"table:reset_token,alias:t"`

	UserID    string `bun:",pk"`
	ID        string
	CV        int64
	CreatedAt int64
	ExpiresAt int64
}

var resetFences = []engine.Kind{
	engine.AllFenced(func(w replace.Redeem) string { return w.ID },
		func(ctx context.Context, tx bun.Tx, ws []replace.Redeem) (gone []string, err error) {
			ids := make([]string, len(ws))
			for i, w := range ws {
				ids[i] = w.ID
			}
			_, err = tx.NewDelete().Table("reset_token").Where("id IN (?)", bun.List(ids)).Returning("id").
				Exec(ctx, &gone)
			return gone, err
		}),
}

var resetWrites = []engine.Kind{
	engine.All(func(ctx context.Context, tx bun.Tx, ws []replace.Issue) error {
		rows := make([]resetTokenRow, len(ws))
		for i, w := range ws {
			rows[i] = resetTokenRow{UserID: w.UserID, ID: w.ID, CV: w.CV, CreatedAt: ms(w.CreatedAt),
				ExpiresAt: ms(w.ExpiresAt)}
		}
		_, err := tx.NewInsert().Model(&rows).On("CONFLICT (user_id) DO UPDATE").Set("id = EXCLUDED.id").
			Set("cv = EXCLUDED.cv").
			Set("created_at = EXCLUDED.created_at").Set("expires_at = EXCLUDED.expires_at").Returning("NULL").Exec(ctx)
		return err
	}),
}

// Token implements replace.Store.
func (s ResetTokens) Token(ctx context.Context, id string) (replace.Token, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var r resetTokenRow
	err := s.db.Conn(ctx).NewSelect().Model(&r).Where("id = ?", id).Scan(ctx)
	return replace.Token{ID: r.ID, UserID: r.UserID, CV: r.CV, CreatedAt: at(r.CreatedAt), ExpiresAt: at(r.ExpiresAt)},
		translate(err)
}

// Purge implements replace.Store.
func (s ResetTokens) Purge(ctx context.Context, expired time.Time) error {
	return s.db.Purge(ctx, "reset_token", "id", "expires_at < ?", ms(expired))
}
