// Package parametertest is the suite of parameter.Store.
package parametertest

import (
	"encoding/json"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
)

// Run checks an implementation of parameter.Store.
func Run(t *testing.T, open storetest.Open[parameter.Store]) {
	storetest.Run(t, open, storetest.Cases[parameter.Store]{
		"List":       list,
		"UniqueCode": uniqueCode,
		"OneWins":    oneWins,
		"Seed":       seed,
	})
}

func add(t *testing.T, s parameter.Store, code string, editable bool) parameter.Parameter {
	t.Helper()
	id, err := s.Add(t.Context(), parameter.Parameter{Code: code, Name: "name of " + code,
		JSON: json.RawMessage(`{"a":1}`), Editable: editable})
	storetest.Must(t, err)
	return only(t, s, parameter.Query{ID: &id})
}

func only(t *testing.T, s parameter.Store, q parameter.Query) parameter.Parameter {
	t.Helper()
	all, err := s.List(t.Context(), q)
	storetest.Must(t, err)
	if len(all) != 1 {
		t.Fatalf("%d parameters", len(all))
	}
	return all[0]
}

func list(t *testing.T, s parameter.Store, _ commit.Committer) {
	a, b := add(t, s, "A", true), add(t, s, "B", false)
	for name, q := range map[string]parameter.Query{
		"id": {ID: &b.ID}, "code": {Code: &b.Code}, "editable": {Editable: new(false)}} {
		if got := only(t, s, q); got.ID != b.ID || got.Editable || got.Name != "name of B" {
			t.Errorf("by %s: %+v", name, got)
		}
	}
	all, err := s.List(t.Context(), parameter.Query{})
	storetest.Must(t, err)
	storetest.Same(t, all, []parameter.Parameter{a, b})
	if a.CreatedAt.IsZero() || !a.CreatedAt.Equal(a.UpdatedAt) {
		t.Errorf("%+v", a)
	}
}

func uniqueCode(t *testing.T, s parameter.Store, _ commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(int) error {
		_, err := s.Add(t.Context(), parameter.Parameter{Code: "A", JSON: json.RawMessage(`{}`)})
		return err
	})
	if won != 1 {
		t.Errorf("%d of 8 were added", won)
	}
}

// Of concurrent changes of one version one succeeds, even within a millisecond, and a later change starts from the
// saved value.
func oneWins(t *testing.T, s parameter.Store, _ commit.Committer) {
	p := add(t, s, "A", true)
	for round := range 5 {
		won := storetest.Race(t, 6, fault.InvalidState, func(int) error {
			_, err := s.Save(t.Context(), p, json.RawMessage(`{"b":2}`))
			return err
		})
		next := only(t, s, parameter.Query{ID: &p.ID})
		if won != 1 || !next.UpdatedAt.After(p.UpdatedAt) || string(next.JSON) != `{"b":2}` {
			t.Fatalf("round %d: %d won, %+v after %+v", round, won, next, p)
		}
		p = next
	}
	saved, err := s.Save(t.Context(), p, json.RawMessage(`{}`))
	storetest.Must(t, err)
	storetest.Same(t, only(t, s, parameter.Query{}), saved)
}

// A start adds the missing parameters and leaves those that an administrator changed.
func seed(t *testing.T, s parameter.Store, _ commit.Committer) {
	storetest.Must(t, parameter.Seed(t.Context(), s))
	first, err := s.List(t.Context(), parameter.Query{})
	storetest.Must(t, err)
	changed, err := s.Save(t.Context(), only(t, s, parameter.Query{Code: &parameter.CDN.Code}),
		json.RawMessage(`{"folderTypes":["x"]}`))
	storetest.Must(t, err)
	storetest.Must(t, parameter.Seed(t.Context(), s))
	again, err := s.List(t.Context(), parameter.Query{})
	storetest.Must(t, err)
	if len(first) < 9 || len(again) != len(first) {
		t.Errorf("%d parameters, then %d", len(first), len(again))
	}
	storetest.Same(t, only(t, s, parameter.Query{Code: &parameter.CDN.Code}), changed)

	live := parameter.NewCache(s)
	if got := parameter.CDN.In(live.Set()); len(got.FolderTypes) < 2 {
		t.Errorf("before the first reading: %v", got)
	}
	storetest.Must(t, live.Reload(t.Context()))
	storetest.Same(t, parameter.CDN.In(live.Set()).FolderTypes, []string{"x"})
	storetest.Must(t, parameter.AMLControl.Change(t.Context(), s, func(v parameter.Ignored) (parameter.Ignored, error) {
		v.IgnoredUsers = append(v.IgnoredUsers, "u1")
		return v, nil
	}))
	storetest.Must(t, live.Reload(t.Context()))
	storetest.Same(t, parameter.AMLControl.In(live.Set()).IgnoredUsers, []string{"u1"})
	if l := parameter.UserStatus.In(live.Set()); !l.Allows("active") || l.Allows("Active") {
		t.Errorf("%v", l)
	}
}
