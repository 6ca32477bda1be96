package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/mfa"
	"castellan/persistence/engine"
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
	err := engine.ReadJSON(r.Title, &a.Title)
	if err == nil {
		err = engine.ReadJSON(r.InfoTableHeaders, &a.Headers)
	}
	return a, err
}

func (r *mfaActionRow) take(a mfa.Action) error {
	r.Title, r.InfoTableHeaders = engine.WriteJSON(a.Title), engine.WriteJSON(a.Headers)
	return nil
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
	return p, engine.ReadJSON(r.Methods, &p.Methods)
}

func (r *mfaPolicyRow) take(p mfa.Policy) error {
	r.Name, r.ExpireAt, r.Required, r.Preferred, r.NumberMatching = p.Name, p.ExpireAt, p.Required, p.Preferred, p.NumberMatching
	r.Methods = engine.WriteJSON(p.Methods)
	return nil
}

// Methods implements mfa.Store.
func (s MFA) Methods(ctx context.Context) ([]mfa.Method, error) {
	return listRecords[mfaMethodRow, mfa.Method](ctx, s.db)
}

// Actions implements mfa.Store.
func (s MFA) Actions(ctx context.Context) ([]mfa.Action, error) {
	return listRecords[mfaActionRow, mfa.Action](ctx, s.db)
}

// Policies implements mfa.Store.
func (s MFA) Policies(ctx context.Context) ([]mfa.Policy, error) {
	return listRecords[mfaPolicyRow, mfa.Policy](ctx, s.db)
}

// AddMethod implements mfa.Store.
func (s MFA) AddMethod(ctx context.Context, m mfa.Method) error {
	now := ms(s.db.Now())
	_, err := addRecord(ctx, s.db, &mfaMethodRow{Code: m.Code, CreatedAt: now, UpdatedAt: now}, m)
	return err
}

// AddAction implements mfa.Store.
func (s MFA) AddAction(ctx context.Context, a mfa.Action) error {
	now := ms(s.db.Now())
	_, err := addRecord(ctx, s.db, &mfaActionRow{Code: a.Code, CreatedAt: now, UpdatedAt: now}, a)
	return err
}

// AddPolicy implements mfa.Store.
func (s MFA) AddPolicy(ctx context.Context, p mfa.Policy) (int64, error) {
	now := ms(s.db.Now())
	return addRecord(ctx, s.db, &mfaPolicyRow{ActionCode: p.ActionCode, EntityType: string(p.EntityType), EntityID: p.EntityID, Type: p.Type,
		CreatedAt: now, UpdatedAt: now}, p)
}

// ChangeMethod implements mfa.Store.
func (s MFA) ChangeMethod(ctx context.Context, code string, change func(mfa.Method) (mfa.Method, error)) error {
	return changeRecord[mfaMethodRow](ctx, s.db, change, "code = ?", code)
}

// ChangeAction implements mfa.Store.
func (s MFA) ChangeAction(ctx context.Context, code string, change func(mfa.Action) (mfa.Action, error)) error {
	return changeRecord[mfaActionRow](ctx, s.db, change, "code = ?", code)
}

// ChangeCommon implements mfa.Store.
func (s MFA) ChangeCommon(ctx context.Context, id int64, change func(mfa.Policy) (mfa.Policy, error)) error {
	return changeRecord[mfaPolicyRow](ctx, s.db, change, "id = ? AND type = ?", id, mfa.Common)
}
