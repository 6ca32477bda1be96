package factor

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/factor/mfa"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type MFA struct{ db *engine.DB }

func NewMFA(db *engine.DB) mfa.Store { return MFA{db} }

type mfaMethodRow struct {
	bun.BaseModel `bun:"table:mfa_method,alias:m"`

	ID           int64 `bun:",pk,autoincrement"`
	Code         string
	ExpireMs     int64
	RenewStartMs int64
	record.Stamps
}

type mfaActionRow struct {
	bun.BaseModel `bun:"table:mfa_action,alias:a"`

	ID               int64 `bun:",pk,autoincrement"`
	Code             string
	Title            record.JSON[mfa.Text]
	InfoTableHeaders record.JSON[mfa.Headers]
	record.Stamps
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
	Methods    record.JSON[[]mfa.Choice]
	Required   int
	Preferred  *int
	// NumberMatching and the others are options of ours.
	NumberMatching    bool
	SignIntent        bool
	PhishingResistant bool
	PasskeyAlone      bool
	RememberDays      int `bun:"remember"`
	RememberAnyway    bool
	record.Stamps
}

var (
	mfaMethods = record.Of(record.Table[mfaMethodRow, mfa.Method]{
		Fixed: []string{"code", "created_at"},
	}, nil)
	mfaActions = record.Of(record.Table[mfaActionRow, mfa.Action]{
		Fixed: []string{"code", "created_at"},
	}, record.Names{"InfoTableHeaders": "Headers"})
	mfaPolicies = record.Of(record.Table[mfaPolicyRow, mfa.Policy]{
		Fixed: []string{"action_code", "entity_type", "entity_id", "type", "created_at"},
	}, nil)
)

func (s MFA) Methods(ctx context.Context, codes ...string) ([]mfa.Method, error) {
	return mfaMethods.List(ctx, s.db, record.Part{Where: []record.Filter{record.Among("code", codes)}})
}

func (s MFA) Actions(ctx context.Context, codes ...string) ([]mfa.Action, error) {
	return mfaActions.List(ctx, s.db, record.Part{Where: []record.Filter{record.Among("code", codes)}})
}

func (s MFA) Policies(ctx context.Context) ([]mfa.Policy, error) {
	return mfaPolicies.List(ctx, s.db, record.Part{})
}

func (s MFA) AddMethod(ctx context.Context, m mfa.Method) error {
	_, err := mfaMethods.Add(ctx, s.db, m)
	return err
}

func (s MFA) AddAction(ctx context.Context, a mfa.Action) error {
	_, err := mfaActions.Add(ctx, s.db, a)
	return err
}

func (s MFA) AddPolicy(ctx context.Context, p mfa.Policy) (int64, error) {
	return mfaPolicies.Add(ctx, s.db, p)
}

func (s MFA) ChangeMethod(ctx context.Context, code string, f func(mfa.Method) (mfa.Method, error)) error {
	return mfaMethods.Change(ctx, s.db, f, record.Is("code", code))
}

func (s MFA) ChangeAction(ctx context.Context, code string, f func(mfa.Action) (mfa.Action, error)) error {
	return mfaActions.Change(ctx, s.db, f, record.Is("code", code))
}

func (s MFA) RemoveCommon(ctx context.Context, id int64, check func(mfa.Policy) error) error {
	one := []record.Filter{record.Is("id", id), record.Is("type", mfa.Common)}
	return record.Write(ctx, s.db, func(ctx context.Context, _ bun.IDB) error {
		p, err := mfaPolicies.Lock(ctx, s.db, one...)
		if err == nil {
			err = check(p)
		}
		if err != nil {
			return err
		}
		return mfaPolicies.Remove(ctx, s.db, one...)
	})
}

func (s MFA) ChangeCommon(ctx context.Context, id int64, f func(mfa.Policy) (mfa.Policy, error)) error {
	return mfaPolicies.Change(ctx, s.db, f, record.Is("id", id), record.Is("type", mfa.Common))
}
