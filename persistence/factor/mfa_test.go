package factor_test

import (
	"errors"
	"reflect"
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

func TestMFAStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) mfa.Store { return factor.NewMFA(db) },
		storetest.Cases[mfa.Store]{
			"RoundTrip":          mfaRoundTrip,
			"CodesAreUnique":     mfaCodesAreUnique,
			"OnePolicyPerEntity": mfaOnePolicyPerEntity,
			"Change":             mfaChange,
			"ChangeCommon":       mfaChangeCommon,
			"RemoveCommon":       mfaRemoveCommon,
		}, "mfa_method", "mfa_action", "mfa_policy")
}

func commonPolicy(action string) mfa.Policy {
	return mfa.Policy{ActionCode: action, Name: "n", EntityType: mfa.General, Type: mfa.Common, Required: 1,
		Methods: []mfa.Choice{{Code: "SMS"}}}
}

// wholeAction has a value in every field; texts have known languages only.
func wholeAction(t *testing.T, code string) mfa.Action {
	return persistencetest.Whole(t, func(a *mfa.Action) {
		a.Code, a.Title = code, mfa.Text{"tr": "Şifre? 'x' \\ ?", "ar": "دخول"}
		a.Headers[0].Label = mfa.Text{"en": `"quoted"`}
	})
}

func mfaRoundTrip(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	methods := []mfa.Method{
		persistencetest.Whole(t, func(m *mfa.Method) { m.Code, m.ExpireMs = "ZZ", 1<<40 }), {Code: "AA"}}
	actions := []mfa.Action{wholeAction(t, "ZZ"), {Code: "AA", Title: mfa.Text{"en": ""}, Headers: mfa.Headers{}}}
	second := persistencetest.Whole(t, func(p *mfa.Policy) {
		p.ActionCode, p.EntityType, p.EntityID, p.Type = "AA", mfa.General, "", mfa.Common
		p.ExpireAt, p.Preferred, p.Methods = mfa.MaxInstantMs, new(0), append(p.Methods, mfa.Choice{Code: "TOTP"})
	})
	user := commonPolicy("AA")
	user.EntityType, user.EntityID = mfa.UserID, "u1"
	policies := []mfa.Policy{commonPolicy("ZZ"), second, user}
	for i := range methods {
		storetest.Must(t, s.AddMethod(ctx, methods[i]))
		storetest.Must(t, s.AddAction(ctx, actions[i]))
	}
	for i := range policies {
		id := storetest.Value(s.AddPolicy(ctx, policies[i]))(t)
		if id < 1 {
			t.Errorf("id %d", id)
		}
		policies[i].ID = id
	}
	gotMethods := storetest.Value(s.Methods(ctx))(t)
	gotActions := storetest.Value(s.Actions(ctx))(t)
	gotPolicies := storetest.Value(s.Policies(ctx))(t)
	oneMethod := storetest.Value(s.Methods(ctx, methods[1].Code, "NONE"))(t)
	oneAction := storetest.Value(s.Actions(ctx, actions[1].Code))(t)
	noAction := storetest.Value(s.Actions(ctx, "NONE"))(t)
	for _, c := range []struct{ got, want any }{{gotMethods, methods}, {gotActions, actions}, {gotPolicies, policies},
		{oneMethod, methods[1:2]}, {oneAction, actions[1:2]}, {noAction, []mfa.Action{}}} {
		storetest.Same(t, c.got, c.want)
	}
}

const racers = 8

func mfaCodesAreUnique(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist,
		func(i int) error { return s.AddMethod(ctx, mfa.Method{Code: "SMS", ExpireMs: int64(i)}) }); n != 1 {
		t.Errorf("%d of %d methods SMS were added", n, racers)
	}
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist,
		func(int) error { return s.AddAction(ctx, mfa.Action{Code: "SMS", Title: mfa.Text{"en": "x"}}) }); n != 1 {
		t.Errorf("%d of %d actions were added", n, racers)
	}
	ms := storetest.Value(s.Methods(ctx))(t)
	as := storetest.Value(s.Actions(ctx))(t)
	storetest.Equal(t, len(ms), 1)
	storetest.Equal(t, len(as), 1)
}

func mfaOnePolicyPerEntity(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist,
		func(int) error { return storetest.Err(s.AddPolicy(ctx, commonPolicy("AA"))) }); n != 1 {
		t.Errorf("%d of %d policies were added", n, racers)
	}
	expired := commonPolicy("AA")
	expired.ExpireAt = 1
	_, err := s.AddPolicy(ctx, expired)
	storetest.Wants(t, err, fault.RecordAlreadyExist)

	// An expired one still occupies its key (D-MFA-08).
	expired.ActionCode = "BB"
	_, err = s.AddPolicy(ctx, expired)
	storetest.Must(t, err)
	storetest.Wants(t, storetest.Err(s.AddPolicy(ctx, commonPolicy("BB"))), fault.RecordAlreadyExist)

	for _, id := range []string{"u1", "u2"} {
		p := commonPolicy("AA")
		p.EntityType, p.EntityID = mfa.UserID, id
		_, err := s.AddPolicy(ctx, p)
		storetest.Must(t, err)
	}
	storetest.Equal(t, len(storetest.Value(s.Policies(ctx))(t)), 4)
}

func mfaChange(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.AddMethod(ctx, mfa.Method{Code: "AA", ExpireMs: 1}))
	storetest.Must(t, s.AddMethod(ctx, mfa.Method{Code: "BB", ExpireMs: 1}))
	storetest.Must(t, s.AddAction(ctx, mfa.Action{Code: "AA", Title: mfa.Text{"en": "x"}, Headers: mfa.Headers{}}))
	storetest.Wants(t, s.ChangeMethod(ctx, "CC", func(m mfa.Method) (mfa.Method, error) {
		t.Error("called")
		return m, nil
	}), fault.RecordNotFound)
	storetest.Wants(t, s.ChangeAction(ctx, "CC", func(a mfa.Action) (mfa.Action, error) {
		t.Error("called")
		return a, nil
	}), fault.RecordNotFound)

	refusal := errors.New("no")
	if err := s.ChangeMethod(ctx, "AA", func(m mfa.Method) (mfa.Method, error) {
		m.ExpireMs = 9
		return m, refusal
	}); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	storetest.Wants(t, s.ChangeMethod(ctx, "AA", func(m mfa.Method) (mfa.Method, error) {
		return m, fault.New(fault.InvalidField, "nothing to change")
	}), fault.InvalidField)
	if ms, _ := s.Methods(ctx); ms[0].ExpireMs != 1 {
		t.Errorf("a refused change was saved: %+v", ms[0])
	}

	next := persistencetest.Whole(t, func(m *mfa.Method) { m.Code = "BB" })
	storetest.Must(t, s.ChangeMethod(ctx, "AA", func(m mfa.Method) (mfa.Method, error) {
		storetest.Equal(t, m, (mfa.Method{Code: "AA", ExpireMs: 1}))
		return next, nil
	}))
	storetest.Must(t, s.ChangeAction(ctx, "AA", func(mfa.Action) (mfa.Action, error) { return wholeAction(t, "BB"), nil }))
	ms := storetest.Value(s.Methods(ctx))(t)
	next.Code = "AA"
	storetest.Same(t, ms, []mfa.Method{next, {Code: "BB", ExpireMs: 1}})
	as := storetest.Value(s.Actions(ctx))(t)
	storetest.Same(t, as, []mfa.Action{wholeAction(t, "AA")})
}

func mfaChangeCommon(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	special := commonPolicy("AA")
	special.Type = "SPECIAL"
	other := storetest.Value(s.AddPolicy(ctx, special))(t)
	id := storetest.Value(s.AddPolicy(ctx, commonPolicy("AA")))(t)
	for _, unknown := range []int64{other, id + 1000, 0, -1} {
		storetest.Wants(t, s.ChangeCommon(ctx, unknown,
			func(p mfa.Policy) (mfa.Policy, error) { t.Error("called"); return p, nil }), fault.RecordNotFound)
	}
	next := persistencetest.Whole[mfa.Policy](t)
	storetest.Must(t, s.ChangeCommon(ctx, id, func(p mfa.Policy) (mfa.Policy, error) {
		if want := commonPolicy("AA"); p.ID != id || p.Name != want.Name || p.Preferred != nil {
			t.Errorf("change got %+v", p)
		}
		return next, nil
	}))
	ps := storetest.Value(s.Policies(ctx))(t)
	want := next
	want.ID, want.ActionCode, want.EntityType, want.EntityID, want.Type = id, "AA", mfa.General, "", mfa.Common
	if len(ps) != 2 || !reflect.DeepEqual(ps[1], want) {
		t.Errorf("got  %+v\nwant %+v", ps, want)
	}
}

// A policy is deleted once, however many callers race, and its action may have another one.
func mfaRemoveCommon(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx, refusal := t.Context(), errors.New("no")
	special := commonPolicy("AA")
	special.Type = "SPECIAL"
	other := storetest.Value(s.AddPolicy(ctx, special))(t)
	id := storetest.Value(s.AddPolicy(ctx, commonPolicy("AA")))(t)
	unseen := func(mfa.Policy) error { t.Error("called"); return nil }
	for _, unknown := range []int64{other, id + 1000, 0, -1} {
		storetest.Wants(t, s.RemoveCommon(ctx, unknown, unseen), fault.RecordNotFound)
	}
	if err := s.RemoveCommon(ctx, id, func(p mfa.Policy) error {
		storetest.Equal(t, p.ID, id, p)
		storetest.Equal(t, p.ActionCode, "AA", p)
		return refusal
	}); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	storetest.Equal(t, len(storetest.Value(s.Policies(ctx))(t)), 2, "a refused deletion")
	storetest.OneWins(t, racers, fault.RecordNotFound, func(int) error {
		return s.RemoveCommon(ctx, id, func(mfa.Policy) error { return nil })
	})
	_, err := s.AddPolicy(ctx, commonPolicy("AA"))
	storetest.Must(t, err)
}
