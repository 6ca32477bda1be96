package persistence

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/commit"
	"castellan/domain/credential"
)

// Credentials implements credential.Store.
type Credentials struct{ db *DB }

var _ credential.Store = Credentials{}

// NewCredentials returns the one-time tokens kept in db.
func NewCredentials(db *DB) Credentials { return Credentials{db} }

type resetTokenRow struct {
	bun.BaseModel `bun:"table:reset_token,alias:t"`

	UserID    string `bun:",pk"`
	ID        string
	CV        int64
	CreatedAt int64
	ExpiresAt int64
}

var credentialFences = []planFor{
	{reflect.TypeFor[credential.Redeem](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error) {
		ids := make([]string, len(ws))
		for i, w := range ws {
			ids[i] = w.(credential.Redeem).ID
		}
		slices.Sort(ids) // one order in every process
		var gone []string
		_, err = l.tx.NewDelete().Table("reset_token").Where("id IN (?)", bun.List(ids)).Returning("id").Exec(ctx, &gone)
		if err != nil {
			return nil, err
		}
		for i, w := range ws {
			if !slices.Contains(gone, w.(credential.Redeem).ID) {
				missing = append(missing, i)
			}
		}
		return missing, nil
	}}},
}

var credentialWrites = []planFor{
	together(func(ctx context.Context, tx bun.Tx, ws []credential.Issue) error {
		rows := make([]resetTokenRow, len(ws))
		for i, w := range ws {
			rows[i] = resetTokenRow{UserID: w.UserID, ID: w.ID, CV: w.CV, CreatedAt: ms(w.CreatedAt), ExpiresAt: ms(w.ExpiresAt)}
		}
		_, err := tx.NewInsert().Model(&rows).On("CONFLICT (user_id) DO UPDATE").Set("id = EXCLUDED.id").Set("cv = EXCLUDED.cv").
			Set("created_at = EXCLUDED.created_at").Set("expires_at = EXCLUDED.expires_at").Returning("NULL").Exec(ctx)
		return err
	}),
}

// Token implements credential.Store.
func (s Credentials) Token(ctx context.Context, id string) (credential.Token, error) {
	ctx, cancel := s.db.bound(ctx)
	defer cancel()
	var r resetTokenRow
	err := s.db.conn(ctx).NewSelect().Model(&r).Where("id = ?", id).Scan(ctx)
	return credential.Token{ID: r.ID, UserID: r.UserID, CV: r.CV, CreatedAt: at(r.CreatedAt), ExpiresAt: at(r.ExpiresAt)}, translate(err)
}

// Purge implements credential.Store.
func (s Credentials) Purge(ctx context.Context, expired time.Time) error {
	return s.db.purge(ctx, "reset_token", "id", "expires_at < ?", ms(expired))
}
