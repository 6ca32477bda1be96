package persistence

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"castellan/domain/mfa"
)

// MFA implements mfa.Store.
type MFA struct{ db *DB }

var _ mfa.Store = MFA{}

// NewMFA returns the configuration of the second factor kept in db.
func NewMFA(db *DB) MFA { return MFA{db} }

type mfaMethodRow struct {
	bun.BaseModel `bun:"table:mfa_method,alias:m"`

	ID           int64 `bun:",pk,autoincrement"`
	Code         string
	ExpireMs     int64
	RenewStartMs int64
	CreatedAt    int64
	UpdatedAt    int64
}

func (r *mfaMethodRow) record() (mfa.Method, error) {
	return mfa.Method{Code: r.Code, ExpireMs: r.ExpireMs, RenewStartMs: r.RenewStartMs}, nil
}

func (r *mfaMethodRow) take(m mfa.Method) error {
	r.ExpireMs, r.RenewStartMs = m.ExpireMs, m.RenewStartMs
	return nil
}

type mfaActionRow struct {
	bun.BaseModel `bun:"table:mfa_action,alias:a"`

	ID               int64 `bun:",pk,autoincrement"`
	Code             string
	Title            string
	InfoTableHeaders string
	CreatedAt        int64
	UpdatedAt        int64
}

func (r *mfaActionRow) record() (mfa.Action, error) {
	a := mfa.Action{Code: r.Code}
	err := readJSON(r.Title, &a.Title)
	if err == nil {
		err = readJSON(r.InfoTableHeaders, &a.Headers)
	}
	return a, err
}

func (r *mfaActionRow) take(a mfa.Action) (err error) {
	if r.Title, err = writeJSON(a.Title); err == nil {
		r.InfoTableHeaders, err = writeJSON(a.Headers)
	}
	return err
}

type mfaPolicyRow struct {
	bun.BaseModel `bun:"table:mfa_policy,alias:p"`

	ID         int64 `bun:",pk,autoincrement"`
	ActionCode string
	Name       string
	EntityType string
	EntityID   string
	ExpireAt   int64
	Type       string
	Methods    string
	Required   int
	Preferred  *int
	// NumberMatching is an option of ours.
	NumberMatching bool
	CreatedAt      int64
	UpdatedAt      int64
}

func (r *mfaPolicyRow) record() (mfa.Policy, error) {
	p := mfa.Policy{ID: r.ID, ActionCode: r.ActionCode, Name: r.Name, EntityType: mfa.EntityType(r.EntityType), EntityID: r.EntityID,
		ExpireAt: r.ExpireAt, Type: r.Type, Required: r.Required, Preferred: r.Preferred, NumberMatching: r.NumberMatching}
	return p, readJSON(r.Methods, &p.Methods)
}

func (r *mfaPolicyRow) take(p mfa.Policy) (err error) {
	r.Name, r.ExpireAt, r.Required, r.Preferred, r.NumberMatching = p.Name, p.ExpireAt, p.Required, p.Preferred, p.NumberMatching
	r.Methods, err = writeJSON(p.Methods)
	return err
}

// Methods implements mfa.Store.
func (s MFA) Methods(ctx context.Context) ([]mfa.Method, error) {
	return mfaList[mfaMethodRow, mfa.Method](ctx, s.db)
}

// Actions implements mfa.Store.
func (s MFA) Actions(ctx context.Context) ([]mfa.Action, error) {
	return mfaList[mfaActionRow, mfa.Action](ctx, s.db)
}

// Policies implements mfa.Store.
func (s MFA) Policies(ctx context.Context) ([]mfa.Policy, error) {
	return mfaList[mfaPolicyRow, mfa.Policy](ctx, s.db)
}

// AddMethod implements mfa.Store.
func (s MFA) AddMethod(ctx context.Context, m mfa.Method) error {
	now := ms(s.db.now())
	_, err := mfaAdd(ctx, s.db, &mfaMethodRow{Code: m.Code, CreatedAt: now, UpdatedAt: now}, m)
	return err
}

// AddAction implements mfa.Store.
func (s MFA) AddAction(ctx context.Context, a mfa.Action) error {
	now := ms(s.db.now())
	_, err := mfaAdd(ctx, s.db, &mfaActionRow{Code: a.Code, CreatedAt: now, UpdatedAt: now}, a)
	return err
}

// AddPolicy implements mfa.Store.
func (s MFA) AddPolicy(ctx context.Context, p mfa.Policy) (int64, error) {
	now := ms(s.db.now())
	return mfaAdd(ctx, s.db, &mfaPolicyRow{ActionCode: p.ActionCode, EntityType: string(p.EntityType), EntityID: p.EntityID, Type: p.Type,
		CreatedAt: now, UpdatedAt: now}, p)
}

// ChangeMethod implements mfa.Store.
func (s MFA) ChangeMethod(ctx context.Context, code string, change func(mfa.Method) (mfa.Method, error)) error {
	return mfaChange[mfaMethodRow](ctx, s.db, change, "code = ?", code)
}

// ChangeAction implements mfa.Store.
func (s MFA) ChangeAction(ctx context.Context, code string, change func(mfa.Action) (mfa.Action, error)) error {
	return mfaChange[mfaActionRow](ctx, s.db, change, "code = ?", code)
}

// ChangeCommon implements mfa.Store.
func (s MFA) ChangeCommon(ctx context.Context, id int64, change func(mfa.Policy) (mfa.Policy, error)) error {
	return mfaChange[mfaPolicyRow](ctx, s.db, change, "id = ? AND type = ?", id, mfa.Common)
}

// mfaRow is a row R that stands for a record T; take sets what of T may
// change.
type mfaRow[R, T any] interface {
	*R
	record() (T, error)
	take(T) error
}

func mfaList[R, T any, P mfaRow[R, T]](ctx context.Context, db *DB) ([]T, error) {
	ctx, cancel := db.bound(ctx)
	defer cancel()
	var rows []R
	if err := db.conn(ctx).NewSelect().Model(&rows).Order("id").Scan(ctx); err != nil {
		return nil, translate(err)
	}
	out := make([]T, len(rows))
	for i := range rows {
		var err error
		if out[i], err = P(&rows[i]).record(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mfaAdd[R, T any, P mfaRow[R, T]](ctx context.Context, db *DB, row P, record T) (id int64, err error) {
	if err := row.take(record); err != nil {
		return 0, err
	}
	ctx, cancel := db.bound(ctx)
	defer cancel()
	err = db.InTx(ctx, func(ctx context.Context) error {
		return db.conn(ctx).NewInsert().Model(row).Returning("id").Scan(ctx, &id)
	})
	return id, translate(err)
}

// mfaChange stamps the row before it reads it, in one statement: that makes a
// second change wait for this one, in words that both databases know.
func mfaChange[R, T any, P mfaRow[R, T]](ctx context.Context, db *DB, change func(T) (T, error), where string, args ...any) error {
	ctx, cancel := db.bound(ctx)
	defer cancel()
	return translate(db.InTx(ctx, func(ctx context.Context) error {
		row := P(new(R))
		if err := db.conn(ctx).NewUpdate().Model(row).Set("updated_at = ?", ms(db.now())).Where(where, args...).Returning("*").Scan(ctx); err != nil {
			return err
		}
		record, err := row.record()
		if err != nil {
			return err
		}
		if record, err = change(record); err != nil {
			return err
		}
		if err := row.take(record); err != nil {
			return err
		}
		_, err = db.conn(ctx).NewUpdate().Model(row).WherePK().Exec(ctx)
		return err
	}))
}

func readJSON(text string, to any) error {
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("read a stored %T: %w", to, err)
	}
	return nil
}

func writeJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
