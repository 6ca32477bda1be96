package factor

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/factor/remembered"
	"castellan/domain/kit/fault"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Remembered keeps the clients that are remembered.
type Remembered struct{ db *engine.DB }

func NewRemembered(db *engine.DB) remembered.Store { return Remembered{db} }

type rememberedRow struct {
	bun.BaseModel `bun:"table:remembered,alias:r"`

	ID          string `bun:",pk"`
	UserID      string
	Thumbprint  string
	Action      string
	Method      string
	CV          int64
	CreatedAt   int64
	LastUsedAt  int64
	ExpiresAt   int64
	IP          string
	Description string
}

// RememberedFences record uses. SQLite needs a table that is named in full.
var RememberedFences = []engine.Kind{
	engine.Fenced("UPDATE remembered SET last_used_at = v.last_used_at {FROM v} WHERE remembered.id = v.id "+
		"AND remembered.user_id = v.user_id AND remembered.thumbprint = v.thumbprint "+
		"AND remembered.expires_at > v.last_used_at {RETURNING remembered.id}",
		func(w remembered.Used) rememberedRow {
			return rememberedRow{ID: w.ID, UserID: w.UserID, Thumbprint: w.Thumbprint, LastUsedAt: engine.Millis(w.At)}
		}),
}

// RememberedWrites add a client, or replace that of the same account, key and action.
var RememberedWrites = []engine.Kind{
	engine.Update("INSERT INTO remembered (id, user_id, thumbprint, action, method, cv, created_at, last_used_at, "+
		"expires_at, ip, description) SELECT v.id, v.user_id, v.thumbprint, v.action, v.method, v.cv, v.created_at, "+
		"v.last_used_at, v.expires_at, v.ip, v.description {FROM v} WHERE TRUE "+
		"ON CONFLICT (user_id, thumbprint, action) DO UPDATE SET id = excluded.id, method = excluded.method, "+
		"cv = excluded.cv, created_at = excluded.created_at, last_used_at = excluded.last_used_at, "+
		"expires_at = excluded.expires_at, ip = excluded.ip, description = excluded.description",
		func(w remembered.Add) rememberedRow { return clients.Row(w.Client) }),
}

// clients are all of them, for the start of a challenge.
var clients = record.Of(record.Table[rememberedRow, remembered.Client]{
	Absent: "there is no such remembered client",
}, nil)

// liveClients are those of the current credentials of their accounts.
var liveClients = record.Of(record.Table[rememberedRow, remembered.Client]{
	Order: record.Keyset{Columns: "r.id", Descending: true},
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Join("JOIN users AS u ON u.id = r.user_id AND u.cv = r.cv")
	},
}, nil)

func (s Remembered) Find(ctx context.Context, userID, thumbprint, action string) (remembered.Client, error) {
	return clients.Prepared(ctx, s.db, "user_id = $1 AND thumbprint = $2 AND action = $3", userID, thumbprint, action)
}

func (s Remembered) List(ctx context.Context, userID string, now time.Time, limit int) ([]remembered.Client, error) {
	return liveClients.List(ctx, s.db, record.Part{Limit: limit, Where: []record.Filter{
		record.Is("r.user_id", userID), record.Where("r.expires_at > ?", engine.Millis(now))}})
}

func (s Remembered) Of(ctx context.Context, action string, now time.Time, limit int) ([]remembered.Client, error) {
	return liveClients.List(ctx, s.db, record.Part{Limit: limit, Where: []record.Filter{
		record.Is("r.action", action), record.Where("r.expires_at > ?", engine.Millis(now))}})
}

func (s Remembered) Remove(ctx context.Context, userID, id string) error {
	err := clients.Remove(ctx, s.db, record.Is("id", id), record.Is("user_id", userID))
	if fault.CodeOf(err) == fault.RecordNotFound {
		return clients.NotFound()
	}
	return err
}

func (s Remembered) RemoveAll(ctx context.Context, userID string, now time.Time) (n int, err error) {
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		var version int64
		if err := tx.NewSelect().Table("users").Column("cv").Where("id = ?", userID).Scan(ctx, &version); err != nil {
			return err
		}
		var gone []rememberedRow
		if err := tx.NewDelete().Model((*rememberedRow)(nil)).Where("user_id = ?", userID).
			Returning("cv, expires_at").Scan(ctx, &gone); err != nil {
			return err
		}
		n = 0
		for _, r := range gone {
			if r.CV == version && r.ExpiresAt > engine.Millis(now) {
				n++
			}
		}
		return nil
	})
	return n, err
}

func (s Remembered) Purge(ctx context.Context, expired time.Time) error {
	return s.db.PurgePart(ctx, "remembered",
		"(expires_at < ? OR cv <> (SELECT u.cv FROM users AS u WHERE u.id = remembered.user_id))", engine.Millis(expired))
}
