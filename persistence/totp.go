package persistence

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/keyring"
	"castellan/domain/totp"
)

// TOTP implements totp.Store.
type TOTP struct{ db *DB }

var _ totp.Store = TOTP{}

// NewTOTP returns the authenticators kept in db.
func NewTOTP(db *DB) TOTP { return TOTP{db} }

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

// stepRow is what a step is used up with.
type stepRow struct {
	bun.BaseModel `bun:"table:totp"`

	UserID   string
	ID       string
	LastStep int64
}

var totpFences = []planFor{
	{reflect.TypeFor[totp.UseStep](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error) {
		rows := make([]stepRow, len(ws))
		for i, w := range ws {
			u := w.(totp.UseStep)
			rows[i] = stepRow{UserID: u.UserID, ID: u.ID, LastStep: u.Step}
		}
		slices.SortFunc(rows, func(a, b stepRow) int { return strings.Compare(a.UserID, b.UserID) })
		var users []string
		_, err = l.tx.NewUpdate().With("v", l.tx.NewValues(&rows)).Model((*stepRow)(nil)).ModelTableExpr("totp").TableExpr("v").Set("last_step = v.last_step").
			Where("totp.user_id = v.user_id").Where("totp.id = v.id").Where("totp.last_step < v.last_step").Returning("totp.user_id").Exec(ctx, &users)
		if err != nil {
			return nil, err
		}
		for i, w := range ws {
			if !slices.Contains(users, w.(totp.UseStep).UserID) {
				missing = append(missing, i)
			}
		}
		return missing, nil
	}}},
	{reflect.TypeFor[totp.UseCode](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error) {
		for i, w := range ws {
			u := w.(totp.UseCode)
			res, err := l.tx.NewUpdate().Table("recovery_code").Set("used_at = ?", ms(u.At)).Where("user_id = ?", u.UserID).Where("number = ?", u.Number).
				Where("totp_id = ?", u.ID).Where("used_at = 0").Exec(ctx)
			if err != nil {
				return nil, err
			}
			if n, err := res.RowsAffected(); err != nil {
				return nil, err
			} else if n == 0 {
				missing = append(missing, i)
			}
		}
		return missing, nil
	}}},
}

var totpWrites = []planFor{
	each(func(ctx context.Context, tx bun.Tx, w totp.Define) error {
		_, err := tx.NewInsert().Model(&totpRow{UserID: w.UserID, ID: w.ID, Secret: w.Sealed, LastStep: w.LastStep, CreatedAt: ms(w.CreatedAt)}).Returning("NULL").Exec(ctx)
		if err != nil || len(w.Codes) == 0 {
			return err
		}
		codes := make([]recoveryRow, len(w.Codes))
		for i, c := range w.Codes {
			codes[i] = recoveryRow{UserID: w.UserID, Number: i + 1, TOTPID: w.ID, HashKey: c.Key, Hash: c.Sum}
		}
		_, err = tx.NewInsert().Model(&codes).Returning("NULL").Exec(ctx)
		return err
	}),
	each(func(ctx context.Context, tx bun.Tx, w totp.Remove) error {
		for _, table := range []string{"totp", "recovery_code"} {
			if _, err := tx.NewDelete().Table(table).Where("user_id = ?", w.UserID).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	}),
}

// Get implements totp.Store.
func (s TOTP) Get(ctx context.Context, userID string) (totp.Definition, error) {
	ctx, cancel := s.db.bound(ctx)
	defer cancel()
	var r totpRow
	err := translate(s.db.conn(ctx).NewSelect().Model(&r).Where("user_id = ?", userID).Scan(ctx))
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = totp.NotDefined()
	}
	return totp.Definition{UserID: r.UserID, ID: r.ID, Sealed: r.Secret, LastStep: r.LastStep, CreatedAt: at(r.CreatedAt)}, err
}

// Codes implements totp.Store.
func (s TOTP) Codes(ctx context.Context, userID, id string) ([]totp.RecoveryCode, error) {
	ctx, cancel := s.db.bound(ctx)
	defer cancel()
	var rows []recoveryRow
	err := s.db.conn(ctx).NewSelect().Model(&rows).Where("user_id = ?", userID).Where("totp_id = ?", id).Order("number").Scan(ctx)
	out := make([]totp.RecoveryCode, len(rows))
	for i, r := range rows {
		out[i] = totp.RecoveryCode{Number: r.Number, Sum: keyring.Sum{Key: r.HashKey, Sum: r.Hash}}
		if r.UsedAt > 0 {
			out[i].UsedAt = at(r.UsedAt)
		}
	}
	return out, translate(err)
}
