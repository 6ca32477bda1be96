// Package dropdowntest tests the contract of dropdown.Store.
package dropdowntest

import (
	"slices"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/dropdown"
)

// Run checks an implementation of dropdown.Store.
func Run(t *testing.T, open storetest.Open[dropdown.Store]) {
	storetest.Run(t, open, storetest.Cases[dropdown.Store]{
		"List":       list,
		"UniqueCode": uniqueCode,
		"Seed":       seed,
	})
}

func list(t *testing.T, s dropdown.Store, _ commit.Committer) {
	var all []dropdown.Option
	for _, o := range []dropdown.Option{
		{Group: "G", Code: "A", English: "a", Turkish: "ağ", Arabic: "أ", ExplainMandatory: true},
		{Group: "G", Code: "B", English: "b", Turkish: "b", Arabic: "ب"},
		{Group: "B", Code: "A", English: "x", Turkish: "x", Arabic: "x"},
	} {
		id, err := s.Add(t.Context(), o)
		storetest.Must(t, err)
		o.ID = id
		all = append(all, o)
	}
	a, b, g := "A", "B", "G"
	for _, c := range []struct {
		q    dropdown.Query
		want []dropdown.Option
	}{
		{dropdown.Query{}, all},
		{dropdown.Query{Group: &g}, all[:2]},
		{dropdown.Query{Code: &g}, all[:2]},
		{dropdown.Query{Code: &b}, all[1:]}, // an option and a group
		{dropdown.Query{Group: &g, Code: &a}, all[:1]},
		{dropdown.Query{Group: &b, Code: &b}, all[2:]},
		{dropdown.Query{Group: &a}, []dropdown.Option{}},
	} {
		got, err := s.List(t.Context(), c.q)
		storetest.Must(t, err)
		storetest.Same(t, got, c.want)
	}
}

func uniqueCode(t *testing.T, s dropdown.Store, _ commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(int) error {
		_, err := s.Add(t.Context(), dropdown.Option{Group: "G", Code: "A"})
		return err
	})
	if won != 1 {
		t.Errorf("%d of 8 were added", won)
	}
}

// A new installation has every group, with names in three languages. Each group has an option for answers outside the
// list.
func seed(t *testing.T, s dropdown.Store, _ commit.Committer) {
	storetest.Must(t, dropdown.Seed(t.Context(), s))
	for _, group := range []string{dropdown.PurposeOfTransaction, dropdown.SourceOfFunding,
		dropdown.MonthlyIncomeAmount, dropdown.EstimatedMonthlyDWAmount, dropdown.EstimatedMonthlyDWCount} {
		all, err := s.List(t.Context(), dropdown.Query{Group: &group})
		storetest.Must(t, err)
		if len(all) < 4 || !slices.ContainsFunc(all, func(o dropdown.Option) bool { return o.ExplainMandatory }) {
			t.Errorf("%s: %v", group, all)
		}
		for _, o := range all {
			if o.Name("tr") == "" || o.Name("en") == "" || o.Name("ar") == "" || o.Name("de") != o.English {
				t.Errorf("the names of %+v", o)
			}
		}
	}
}
