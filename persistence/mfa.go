package persistence

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"castellan/domain/access/mfa"
	"castellan/persistence/engine"
)

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
	stamps
}

type mfaActionRow struct {
	bun.BaseModel `bun:"table:mfa_action,alias:a"`

	ID               int64 `bun:",pk,autoincrement"`
	Code             string
	Title            string
	InfoTableHeaders string
	stamps
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
	stamps
}

var (
	mfaMethods = table[mfaMethodRow, mfa.Method]{
		fixed: []string{"code", "created_at"},
		record: func(r mfaMethodRow) (mfa.Method, error) {
			return mfa.Method{Code: r.Code, ExpireMs: r.ExpireMs, RenewStartMs: r.RenewStartMs}, nil
		},
		row: func(m mfa.Method) mfaMethodRow {
			return mfaMethodRow{Code: m.Code, ExpireMs: m.ExpireMs, RenewStartMs: m.RenewStartMs}
		},
	}
	mfaActions = table[mfaActionRow, mfa.Action]{
		fixed: []string{"code", "created_at"},
		record: func(r mfaActionRow) (mfa.Action, error) {
			a := mfa.Action{Code: r.Code}
			err := errors.Join(engine.ReadJSON(r.Title, &a.Title), engine.ReadJSON(r.InfoTableHeaders, &a.Headers))
			return a, err
		},
		row: func(a mfa.Action) mfaActionRow {
			return mfaActionRow{Code: a.Code, Title: body(a.Title), InfoTableHeaders: body(a.Headers)}
		},
	}
	mfaPolicies = table[mfaPolicyRow, mfa.Policy]{
		fixed: []string{"action_code", "entity_type", "entity_id", "type", "created_at"},
		record: func(r mfaPolicyRow) (mfa.Policy, error) {
			p := mfa.Policy{ID: r.ID, ActionCode: r.ActionCode, Name: r.Name,
				EntityType: mfa.EntityType(r.EntityType), EntityID: r.EntityID, ExpireAt: r.ExpireAt, Type: r.Type,
				Required: r.Required, Preferred: r.Preferred, NumberMatching: r.NumberMatching}
			err := engine.ReadJSON(r.Methods, &p.Methods)
			return p, err
		},
		row: func(p mfa.Policy) mfaPolicyRow {
			return mfaPolicyRow{ActionCode: p.ActionCode, Name: p.Name, EntityType: string(p.EntityType),
				EntityID: p.EntityID, ExpireAt: p.ExpireAt, Type: p.Type, Methods: body(p.Methods),
				Required: p.Required, Preferred: p.Preferred, NumberMatching: p.NumberMatching}
		},
	}
)

func (s MFA) Methods(ctx context.Context, codes ...string) ([]mfa.Method, error) {
	return mfaMethods.list(ctx, s.db, part{where: []filter{among("code", codes)}})
}

func (s MFA) Actions(ctx context.Context, codes ...string) ([]mfa.Action, error) {
	return mfaActions.list(ctx, s.db, part{where: []filter{among("code", codes)}})
}

func (s MFA) Policies(ctx context.Context) ([]mfa.Policy, error) {
	return mfaPolicies.list(ctx, s.db, part{})
}

func (s MFA) AddMethod(ctx context.Context, m mfa.Method) error {
	_, err := mfaMethods.add(ctx, s.db, m)
	return err
}

func (s MFA) AddAction(ctx context.Context, a mfa.Action) error {
	_, err := mfaActions.add(ctx, s.db, a)
	return err
}

func (s MFA) AddPolicy(ctx context.Context, p mfa.Policy) (int64, error) {
	return mfaPolicies.add(ctx, s.db, p)
}

func (s MFA) ChangeMethod(ctx context.Context, code string, f func(mfa.Method) (mfa.Method, error)) error {
	return mfaMethods.change(ctx, s.db, f, is("code", code))
}

func (s MFA) ChangeAction(ctx context.Context, code string, f func(mfa.Action) (mfa.Action, error)) error {
	return mfaActions.change(ctx, s.db, f, is("code", code))
}

func (s MFA) ChangeCommon(ctx context.Context, id int64, f func(mfa.Policy) (mfa.Policy, error)) error {
	return mfaPolicies.change(ctx, s.db, f, is("id", id), is("type", mfa.Common))
}
