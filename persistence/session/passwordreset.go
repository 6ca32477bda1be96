package session

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/session/replace"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type ResetTokens struct{ db *engine.DB }

func NewResetTokens(db *engine.DB) replace.Store { return ResetTokens{db} }

type resetTokenRow struct {
	bun.BaseModel `bun:"table:reset_token,alias:t"`

	UserID    string `bun:",pk"`
	ID        string
	CV        int64
	CreatedAt int64
	ExpiresAt int64
}

var ResetFences = []engine.Kind{
	engine.Fenced("DELETE FROM reset_token {USING v} WHERE reset_token.id = v.id {RETURNING reset_token.id}",
		func(w replace.Redeem) resetTokenRow { return resetTokenRow{ID: w.ID} }),
}

var ResetWrites = []engine.Kind{
	engine.Update("INSERT INTO reset_token (user_id, id, cv, created_at, expires_at) "+
		"SELECT v.user_id, v.id, v.cv, v.created_at, v.expires_at {FROM v} WHERE TRUE ON CONFLICT (user_id) DO UPDATE "+
		"SET id = excluded.id, cv = excluded.cv, created_at = excluded.created_at, expires_at = excluded.expires_at",
		func(w replace.Issue) resetTokenRow { return resetTokens.Row(w.Token) }),
}

var resetTokens = record.Of(record.Table[resetTokenRow, replace.Token]{}, nil)

func (s ResetTokens) Token(ctx context.Context, id string) (replace.Token, error) {
	return resetTokens.Find(ctx, s.db, record.Is("id", id))
}

func (s ResetTokens) Purge(ctx context.Context, expired time.Time) error {
	return s.db.Purge(ctx, "reset_token", "id", "expires_at < ?", engine.Millis(expired))
}
