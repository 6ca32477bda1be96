package proof

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/proof/totp"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type TOTP struct{ db *engine.DB }

var _ totp.Store = TOTP{}

func NewTOTP(db *engine.DB) TOTP { return TOTP{db} }

type totpRow struct {
	bun.BaseModel `bun:"table:totp,alias:t"`

	UserID    string `bun:",pk"`
	ID        string
	Secret    []byte
	LastStep  int64
	CreatedAt int64
}

type recoveryRow struct {
	bun.BaseModel `bun:"table:recovery_code,alias:t"`

	UserID  string `bun:",pk"`
	Number  int    `bun:",pk"`
	TOTPID  string `bun:"totp_id"`
	HashKey string
	Hash    []byte
	UsedAt  int64
}

// stepRow and codeRow mark a time step and a recovery code as used.
type stepRow struct {
	bun.BaseModel `bun:"table:totp"`

	UserID   string
	ID       string
	LastStep int64
}

type codeRow struct {
	bun.BaseModel `bun:"table:recovery_code"`

	UserID string
	Number int
	TOTPID string `bun:"totp_id"`
	UsedAt int64
}

var TotpFences = []engine.Kind{
	engine.Fenced("UPDATE totp SET last_step = v.last_step {FROM v} "+
		"WHERE totp.user_id = v.user_id AND totp.id = v.id AND totp.last_step < v.last_step "+
		"{RETURNING totp.user_id}",
		func(w totp.UseStep) stepRow { return stepRow{UserID: w.UserID, ID: w.ID, LastStep: w.Step} }),
	engine.Fenced("UPDATE recovery_code SET used_at = v.used_at {FROM v} "+
		"WHERE recovery_code.user_id = v.user_id AND recovery_code.number = v.number "+
		"AND recovery_code.totp_id = v.totp_id AND recovery_code.used_at = 0 {RETURNING recovery_code.user_id}",
		func(w totp.UseCode) codeRow {
			return codeRow{UserID: w.UserID, Number: w.Number, TOTPID: w.ID, UsedAt: engine.Millis(w.At)}
		}),
}

var TotpWrites = []engine.Kind{
	engine.Several(
		engine.Insert(func(w totp.Define) totpRow {
			return totpRow{UserID: w.UserID, ID: w.ID, Secret: w.Sealed, LastStep: w.LastStep,
				CreatedAt: engine.Millis(w.CreatedAt)}
		}),
		engine.InsertMany(func(w totp.Define) []recoveryRow {
			codes := make([]recoveryRow, len(w.Codes))
			for i, c := range w.Codes {
				codes[i] = recoveryRow{UserID: w.UserID, Number: i + 1, TOTPID: w.ID, HashKey: c.Key, Hash: c.Sum}
			}
			return codes
		})),
	engine.Several(
		engine.Update("DELETE FROM totp {USING v} WHERE totp.user_id = v.user_id", ownerOfTOTP),
		engine.Update("DELETE FROM recovery_code {USING v} WHERE recovery_code.user_id = v.user_id", ownerOfTOTP)),
}

func ownerOfTOTP(w totp.Remove) stepRow { return stepRow{UserID: w.UserID} }

func (s TOTP) Get(ctx context.Context, userID string) (totp.Definition, error) {
	var r totpRow
	err := s.db.Find(ctx, &r, "user_id = $1", "", userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = totp.NotDefined()
	}
	return totp.Definition{UserID: r.UserID, ID: r.ID, Sealed: r.Secret, LastStep: r.LastStep,
		CreatedAt: engine.Time(r.CreatedAt)}, err
}

func (s TOTP) Codes(ctx context.Context, userID, id string) ([]totp.RecoveryCode, error) {
	var rows []recoveryRow
	err := s.db.Find(ctx, &rows, "user_id = $1 AND totp_id = $2", "number", userID, id)
	return record.Each(rows, func(r recoveryRow) totp.RecoveryCode {
		return totp.RecoveryCode{Number: r.Number, Sum: keyring.Sum{Key: r.HashKey, Sum: r.Hash},
			UsedAt: engine.Time(r.UsedAt)}
	}), err
}
