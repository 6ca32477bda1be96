package people_test

import (
	"slices"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/dropdown"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDropdownStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) dropdown.Store { return people.NewDropdowns(db) },
		storetest.Cases[dropdown.Store]{
			"UniqueCode": dropdownUniqueCode,
			"Seed":       dropdownSeed,
			"Change":     dropdownChange,
		}, "dropdown_option")
}

func dropdownUniqueCode(t *testing.T, s dropdown.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist,
		func(int) error { return storetest.Err(s.Add(t.Context(), dropdown.Option{Group: "G", Code: "A"})) })
}

// A new installation has every group, with names in three languages. Each group has an option for answers outside the
// list.
func dropdownSeed(t *testing.T, s dropdown.Store, _ commit.Committer) {
	storetest.Must(t, dropdown.Seed(t.Context(), s))
	for _, group := range []string{dropdown.PurposeOfTransaction, dropdown.SourceOfFunding,
		dropdown.MonthlyIncomeAmount, dropdown.EstimatedMonthlyDWAmount, dropdown.EstimatedMonthlyDWCount} {
		all := storetest.Value(s.List(t.Context(), dropdown.Query{Group: &group}))(t)
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

// A change keeps the group and the code; an inactive option is listed on demand, in the order of the numbers.
func dropdownChange(t *testing.T, s dropdown.Store, _ commit.Committer) {
	last := dropdown.Option{Group: "G", Code: "B", OrderNo: 7}
	next := persistencetest.Whole(t, func(o *dropdown.Option) { o.Group, o.Code, o.OrderNo = "G", "A", 8 })
	next.ID = storetest.Value(s.Add(t.Context(), dropdown.Option{Group: "G", Code: "A", OrderNo: 6}))(t)
	last.ID = storetest.Value(s.Add(t.Context(), last))(t)
	storetest.Must(t, s.Change(t.Context(), next.ID, func(dropdown.Option) (dropdown.Option, error) {
		sent := next
		sent.Group, sent.Code = "H", "C"
		return sent, nil
	}))
	for inactive, want := range map[bool][]dropdown.Option{false: {last}, true: {last, next}} {
		storetest.Same(t, storetest.Value(s.List(t.Context(), dropdown.Query{Inactive: inactive}))(t), want)
	}
}
