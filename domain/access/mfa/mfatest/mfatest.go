// Package mfatest is the contract of mfa.Store as a test, including concurrent writers.
package mfatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"castellan/domain/access/mfa"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Run checks a store. open returns an empty one and the committer whose
// transactions it joins; both end with the test.
func Run(t *testing.T, open storetest.Open[mfa.Store]) {
	storetest.Run(t, open, storetest.Cases[mfa.Store]{
		"Empty":               empty,
		"RoundTrip":           roundTrip,
		"OrderOfHeaders":      orderOfHeaders,
		"CodesAreUnique":      codesAreUnique,
		"OnePolicyPerEntity":  onePolicyPerEntity,
		"Change":              change,
		"ChangeCommon":        changeCommon,
		"ChangesDoNotOverlap": changesDoNotOverlap,
		"JoinsTransactions":   joinsTransactions,
		"Seed":                seed,
	})
}

func common(action string) mfa.Policy {
	return mfa.Policy{ActionCode: action, Name: "n", EntityType: mfa.General, Type: mfa.Common, Required: 1,
		Methods: []mfa.Choice{{Code: "SMS"}}}
}

func empty(t *testing.T, s mfa.Store, _ commit.Committer) {
	ms, err := s.Methods(t.Context())
	storetest.Must(t, err)
	as, err := s.Actions(t.Context())
	storetest.Must(t, err)
	ps, err := s.Policies(t.Context())
	storetest.Must(t, err)
	if len(ms)+len(as)+len(ps) > 0 || ms == nil || as == nil || ps == nil {
		t.Errorf("an empty store holds %#v %#v %#v", ms, as, ps)
	}
	_, err = mfa.Load(t.Context(), s)
	storetest.Must(t, err)
}

func roundTrip(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	methods := []mfa.Method{{Code: "ZZ", ExpireMs: 1 << 40, RenewStartMs: 7}, {Code: "AA"}}
	actions := []mfa.Action{
		{Code: "ZZ", Title: mfa.Text{"tr": "Şifre? 'x' \\ ?", "ar": "دخول"},
			Headers: mfa.Headers{{Key: "ğ?", Label: mfa.Text{"en": `"quoted"`}}}},
		{Code: "AA", Title: mfa.Text{"en": ""}, Headers: mfa.Headers{}},
	}
	second := common("AA")
	second.Name, second.ExpireAt, second.Required, second.Preferred = "Ünïcode 'quoted' ?", mfa.MaxInstantMs, 2, new(0)
	second.NumberMatching = true
	second.RememberDays, second.RememberAnyway = 30, true
	second.Methods = []mfa.Choice{{Code: "SMS", Template: "it's ?"}, {Code: "TOTP"}}
	user := common("AA")
	user.EntityType, user.EntityID = mfa.UserID, "u1"
	policies := []mfa.Policy{common("ZZ"), second, user}
	for i := range methods {
		storetest.Must(t, s.AddMethod(ctx, methods[i]))
		storetest.Must(t, s.AddAction(ctx, actions[i]))
	}
	for i := range policies {
		id, err := s.AddPolicy(ctx, policies[i])
		storetest.Must(t, err)
		if id < 1 {
			t.Errorf("id %d", id)
		}
		policies[i].ID = id
	}
	gotMethods, err := s.Methods(ctx)
	storetest.Must(t, err)
	gotActions, err := s.Actions(ctx)
	storetest.Must(t, err)
	gotPolicies, err := s.Policies(ctx)
	storetest.Must(t, err)
	oneMethod, err := s.Methods(ctx, methods[1].Code, "NONE")
	storetest.Must(t, err)
	oneAction, err := s.Actions(ctx, actions[1].Code)
	storetest.Must(t, err)
	noAction, err := s.Actions(ctx, "NONE")
	storetest.Must(t, err)
	for _, c := range []struct{ got, want any }{{gotMethods, methods}, {gotActions, actions}, {gotPolicies, policies},
		{oneMethod, methods[1:2]}, {oneAction, actions[1:2]}, {noAction, []mfa.Action{}}} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got  %+v\nwant %+v", c.got, c.want)
		}
	}
}

// The keys of infoTableHeaders are the rows of a table and keep their order.
func orderOfHeaders(t *testing.T, s mfa.Store, _ commit.Committer) {
	const text = `{"zebra":{"en":"z"},"b":{"en":"b"},"aa":{"en":"a"},"10":{"en":"ten"},"9":{"en":"nine"}}`
	a := mfa.Action{Code: "AA", Title: mfa.Text{"en": "x"}}
	storetest.Must(t, json.Unmarshal([]byte(text), &a.Headers))
	storetest.Must(t, s.AddAction(t.Context(), a))
	got, err := s.Actions(t.Context())
	storetest.Must(t, err)
	if b, _ := json.Marshal(got[0].Headers); string(b) != text {
		t.Errorf("read back %s", b)
	}
}

const racers = 8

func codesAreUnique(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist,
		func(i int) error { return s.AddMethod(ctx, mfa.Method{Code: "SMS", ExpireMs: int64(i)}) }); n != 1 {
		t.Errorf("%d of %d methods SMS were added", n, racers)
	}
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist,
		func(int) error { return s.AddAction(ctx, mfa.Action{Code: "SMS", Title: mfa.Text{"en": "x"}}) }); n != 1 {
		t.Errorf("%d of %d actions were added", n, racers)
	}
	ms, err := s.Methods(ctx)
	storetest.Must(t, err)
	as, err := s.Actions(ctx)
	storetest.Must(t, err)
	if len(ms) != 1 || len(as) != 1 {
		t.Errorf("%d methods, %d actions", len(ms), len(as))
	}
}

func onePolicyPerEntity(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist,
		func(int) error { _, err := s.AddPolicy(ctx, common("AA")); return err }); n != 1 {
		t.Errorf("%d of %d policies were added", n, racers)
	}
	expired := common("AA")
	expired.ExpireAt = 1
	_, err := s.AddPolicy(ctx, expired)
	storetest.Wants(t, err, fault.RecordAlreadyExist)

	// An expired one still occupies its key (D-MFA-08).
	expired.ActionCode = "BB"
	_, err = s.AddPolicy(ctx, expired)
	storetest.Must(t, err)
	_, err = s.AddPolicy(ctx, common("BB"))
	storetest.Wants(t, err, fault.RecordAlreadyExist)

	for _, id := range []string{"u1", "u2"} {
		p := common("AA")
		p.EntityType, p.EntityID = mfa.UserID, id
		_, err := s.AddPolicy(ctx, p)
		storetest.Must(t, err)
	}
	if ps, err := s.Policies(ctx); err != nil || len(ps) != 4 {
		t.Errorf("%d policies, %v", len(ps), err)
	}
}

func change(t *testing.T, s mfa.Store, _ commit.Committer) {
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

	storetest.Must(t, s.ChangeMethod(ctx, "AA", func(m mfa.Method) (mfa.Method, error) {
		if m != (mfa.Method{Code: "AA", ExpireMs: 1}) {
			t.Errorf("change got %+v", m)
		}
		return mfa.Method{Code: "BB", ExpireMs: 2, RenewStartMs: 3}, nil
	}))
	storetest.Must(t, s.ChangeAction(ctx, "AA", func(a mfa.Action) (mfa.Action, error) {
		return mfa.Action{Code: "BB", Title: mfa.Text{"tr": "y"},
			Headers: mfa.Headers{{Key: "k", Label: mfa.Text{"ar": "ك"}}}}, nil
	}))
	ms, err := s.Methods(ctx)
	storetest.Must(t, err)
	if want := []mfa.Method{{Code: "AA", ExpireMs: 2, RenewStartMs: 3},
		{Code: "BB", ExpireMs: 1}}; !reflect.DeepEqual(ms, want) {
		t.Errorf("methods %+v", ms)
	}
	as, err := s.Actions(ctx)
	storetest.Must(t, err)
	if want := []mfa.Action{{Code: "AA", Title: mfa.Text{"tr": "y"},
		Headers: mfa.Headers{{Key: "k", Label: mfa.Text{"ar": "ك"}}}}}; !reflect.DeepEqual(as, want) {
		t.Errorf("actions %+v", as)
	}
}

func changeCommon(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	special := common("AA")
	special.Type = "SPECIAL"
	other, err := s.AddPolicy(ctx, special)
	storetest.Must(t, err)
	id, err := s.AddPolicy(ctx, common("AA"))
	storetest.Must(t, err)
	for _, unknown := range []int64{other, id + 1000, 0, -1} {
		storetest.Wants(t, s.ChangeCommon(ctx, unknown,
			func(p mfa.Policy) (mfa.Policy, error) { t.Error("called"); return p, nil }), fault.RecordNotFound)
	}
	next := mfa.Policy{ID: id + 5, ActionCode: "BB", Name: "m", EntityType: mfa.IP, EntityID: "192.0.2.1", ExpireAt: 5,
		Type:    "SPECIAL",
		Methods: []mfa.Choice{{Code: "MAIL", Template: "t"}, {Code: "SMS"}}, Required: 2, Preferred: new(1)}
	storetest.Must(t, s.ChangeCommon(ctx, id, func(p mfa.Policy) (mfa.Policy, error) {
		if want := common("AA"); p.ID != id || p.Name != want.Name || p.Preferred != nil {
			t.Errorf("change got %+v", p)
		}
		return next, nil
	}))
	ps, err := s.Policies(ctx)
	storetest.Must(t, err)
	want := next
	want.ID, want.ActionCode, want.EntityType, want.EntityID, want.Type = id, "AA", mfa.General, "", mfa.Common
	if len(ps) != 2 || !reflect.DeepEqual(ps[1], want) {
		t.Errorf("got  %+v\nwant %+v", ps, want)
	}
}

// No change is lost between the read and the save of another.
func changesDoNotOverlap(t *testing.T, s mfa.Store, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.AddMethod(ctx, mfa.Method{Code: "AA"}))
	if n := storetest.Race(t, racers, "", func(int) error {
		return s.ChangeMethod(ctx, "AA", func(m mfa.Method) (mfa.Method, error) { m.ExpireMs++; return m, nil })
	}); n != racers {
		t.Errorf("%d of %d changes", n, racers)
	}
	if ms, err := s.Methods(ctx); err != nil || ms[0].ExpireMs != racers {
		t.Errorf("%+v after %d changes, %v", ms, racers, err)
	}
}

func joinsTransactions(t *testing.T, s mfa.Store, tx commit.Committer) {
	refusal := errors.New("no")
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		storetest.Must(t, s.AddMethod(ctx, mfa.Method{Code: "AA"}))
		storetest.Must(t, s.AddAction(ctx, mfa.Action{Code: "AA", Title: mfa.Text{"en": "x"}}))
		_, err := s.AddPolicy(ctx, common("AA"))
		storetest.Must(t, err)
		storetest.Must(t, s.ChangeMethod(ctx, "AA",
			func(m mfa.Method) (mfa.Method, error) { m.ExpireMs = 5; return m, nil }))
		c, err := mfa.Load(ctx, s)
		storetest.Must(t, err)
		if m, ok := c.Method("AA"); !ok || m.ExpireMs != 5 {
			t.Errorf("a transaction does not see its own change: %+v", m)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v", err)
	}
	empty(t, s, tx)
}

func seed(t *testing.T, s mfa.Store, tx commit.Committer) {
	storetest.Must(t, tx.InTx(t.Context(), func(ctx context.Context) error { return mfa.Seed(ctx, s) }))
	ms, err := s.Methods(t.Context())
	storetest.Must(t, err)
	as, err := s.Actions(t.Context())
	storetest.Must(t, err)
	if got := fmt.Sprint(ms); got != "[{SMS 120000 60000} {MAIL 120000 60000} {PUSH 120000 0} {TOTP 0 0}]" {
		t.Errorf("methods %s", got)
	}
	for i, want := range mfa.SeedActions() {
		if len(as) != 9 || !as[i].Equal(want) {
			t.Fatalf("actions %+v", as)
		}
	}
	if ps, err := s.Policies(t.Context()); err != nil || len(ps) != 0 {
		t.Errorf("%d policies, %v", len(ps), err)
	}
}
