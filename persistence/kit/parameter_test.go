package kit_test

import (
	"encoding/json"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestParameterStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) parameter.Store { return kit.NewParameters(db) },
		storetest.Cases[parameter.Store]{
			"List":       listParameters,
			"UniqueCode": parameterUniqueCode,
			"OneWins":    parameterOneWins,
			"Save":       parameterSave,
		}, "parameter")
}

func addParameter(t *testing.T, s parameter.Store, code string, editable bool) parameter.Parameter {
	t.Helper()
	want := persistencetest.Whole(t, func(p *parameter.Parameter) { p.Code, p.Editable = code, editable })
	id := storetest.Value(s.Add(t.Context(), want))(t)
	got := onlyParameter(t, s, parameter.Query{ID: &id})
	want.ID, want.CreatedAt, want.UpdatedAt = id, got.CreatedAt, got.UpdatedAt
	storetest.Same(t, got, want)
	return got
}

func onlyParameter(t *testing.T, s parameter.Store, q parameter.Query) parameter.Parameter {
	t.Helper()
	all := storetest.Value(s.List(t.Context(), q))(t)
	if len(all) != 1 {
		t.Fatalf("%d parameters", len(all))
	}
	return all[0]
}

func listParameters(t *testing.T, s parameter.Store, _ commit.Committer) {
	a, b := addParameter(t, s, "A", true), addParameter(t, s, "B", false)
	for name, q := range map[string]parameter.Query{
		"id": {ID: &b.ID}, "code": {Code: &b.Code}, "editable": {Editable: new(false)}} {
		if got := onlyParameter(t, s, q); got.ID != b.ID || got.Editable {
			t.Errorf("by %s: %+v", name, got)
		}
	}
	all := storetest.Value(s.List(t.Context(), parameter.Query{}))(t)
	storetest.Same(t, all, []parameter.Parameter{a, b})
	if a.CreatedAt.IsZero() || !a.CreatedAt.Equal(a.UpdatedAt) {
		t.Errorf("%+v", a)
	}
}

func parameterUniqueCode(t *testing.T, s parameter.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(int) error {
		_, err := s.Add(t.Context(), parameter.Parameter{Code: "A", JSON: json.RawMessage(`{}`)})
		return err
	})
}

// Of concurrent changes of one version one succeeds, even within a millisecond.
func parameterOneWins(t *testing.T, s parameter.Store, _ commit.Committer) {
	p := addParameter(t, s, "A", true)
	for round := range 5 {
		won := storetest.Race(t, 6, fault.InvalidState,
			func(int) error { return storetest.Err(s.Save(t.Context(), p, json.RawMessage(`{"b":2}`))) })
		next := onlyParameter(t, s, parameter.Query{ID: &p.ID})
		if won != 1 || !next.UpdatedAt.After(p.UpdatedAt) || string(next.JSON) != `{"b":2}` {
			t.Fatalf("round %d: %d won, %+v after %+v", round, won, next, p)
		}
		p = next
	}
}

// A change keeps every other field, and its time is later than that of a version that another clock wrote.
func parameterSave(t *testing.T, s parameter.Store, c commit.Committer) {
	addParameter(t, s, "A", true)
	persistencetest.Exec(t, c.(*persistence.DB), "UPDATE parameter SET updated_at = updated_at + 3600000")
	want := onlyParameter(t, s, parameter.Query{})
	read := want
	read.Code, read.Name, read.Editable, read.CreatedAt = "B", "other", false, time.Time{}
	saved := storetest.Value(s.Save(t.Context(), read, json.RawMessage(`{}`)))(t)
	want.JSON, want.UpdatedAt = json.RawMessage(`{}`), want.UpdatedAt.Add(time.Millisecond)
	if storetest.Same(t, onlyParameter(t, s, parameter.Query{}), want); !saved.UpdatedAt.Equal(want.UpdatedAt) {
		t.Errorf("%+v", saved)
	}
}
