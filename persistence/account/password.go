package account

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/account/password"
	"castellan/domain/kit/fault"
	"castellan/persistence/engine"
)

// Hashes stand with the
// accounts.
type PasswordGuards struct{ db *engine.DB }

var _ password.GuardStore = PasswordGuards{}

func NewPasswordGuards(db *engine.DB) PasswordGuards { return PasswordGuards{db} }

type guardRow struct {
	bun.BaseModel `bun:"table:password_guard,alias:t"`

	ID        string `bun:",pk"`
	Version   int64
	Body      string
	Until     int64
	UpdatedAt int64
}

type guardBody struct {
	Tries []password.Try  `json:"t,omitempty"`
	Good  []password.Good `json:"g,omitempty"`
}

func PasswordFences(now func() time.Time) []engine.Kind {
	return []engine.Kind{
		engine.FencedByVersion(true, func(w password.SaveGuard) guardRow {
			return guardRow{ID: w.Key, Version: max(w.Version, 1), Body: engine.WriteJSON(guardBody{w.Tries, w.Good}),
				Until: engine.Millis(w.Until), UpdatedAt: engine.Millis(now())}
		}, "body", "until", "updated_at"),
	}
}

// PasswordWrites are the writes of guards. Clearing a guard keeps its row: a new row would begin with version 1 again,
// and a pending try could restore the old tries.
func PasswordWrites(now func() time.Time) []engine.Kind {
	return []engine.Kind{
		engine.Update("INSERT INTO password_guard (id, version, body, until, updated_at) "+
			"SELECT v.id, v.version, v.body, v.until, v.updated_at {FROM v} WHERE TRUE ON CONFLICT (id) DO UPDATE SET "+
			"version = password_guard.version + 1, body = excluded.body, until = excluded.until, "+
			"updated_at = excluded.updated_at", func(w password.ResetGuard) guardRow {
			return guardRow{ID: w.Key, Version: 1, Body: engine.WriteJSON(guardBody{Good: []password.Good{w.Good}}),
				Until: engine.Millis(w.Until), UpdatedAt: engine.Millis(now())}
		}),
		engine.Each(func(ctx context.Context, tx bun.Tx, w password.ClearGuard) error {
			return clearGuard(ctx, tx, w, now())
		}),
	}
}

func clearGuard(ctx context.Context, tx bun.Tx, w password.ClearGuard, now time.Time) error {
	// The update takes the row before it is read, so that no other write comes between.
	var r guardRow
	err := tx.NewUpdate().Table("password_guard").Set("version = version + 1").Set("updated_at = ?", engine.Millis(now)).
		Where("id = ?", w.Key).Returning("*").Scan(ctx, &r)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	g, err := guardOf(w.Key, r.Version, r.Body)
	if err != nil {
		return err
	}
	_, err = tx.NewUpdate().Table("password_guard").Set("body = ?", engine.WriteJSON(guardBody{Good: g.Good})).
		Where("id = ?", w.Key).Exec(ctx)
	return err
}

func (s PasswordGuards) Guard(ctx context.Context, key string) (password.Guard, error) {
	var r guardRow
	err := s.db.Find(ctx, &r, "id = $1", "", key)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return password.Guard{}, err
	}
	return guardOf(key, r.Version, r.Body)
}

// guardOf reads a row; version 0 means that there is none.
func guardOf(key string, version int64, body string) (password.Guard, error) {
	g := password.Guard{Key: key, Version: version}
	if version == 0 {
		return g, nil
	}
	var in guardBody
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return g, fmt.Errorf("password guard: body: %w", err)
	}
	g.Tries, g.Good = in.Tries, in.Good
	return g, nil
}

func (s PasswordGuards) Purge(ctx context.Context, before time.Time) error {
	return s.db.PurgePart(ctx, "password_guard", "until < ?", engine.Millis(before))
}
