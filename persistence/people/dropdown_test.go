package people_test

import (
	"errors"
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
			"List":       listOptions,
			"UniqueCode": dropdownUniqueCode,
			"Seed":       dropdownSeed,
			"Change":     dropdownChange,
			"Changes":    dropdownRacingChanges,
		}, "dropdown_option")
}

func listOptions(t *testing.T, s dropdown.Store, _ commit.Committer) {
	var all []dropdown.Option
	for _, o := range []dropdown.Option{
		persistencetest.Whole(t, func(o *dropdown.Option) { o.Group, o.Code, o.OrderNo, o.Inactive = "G", "A", 0, false }),
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

// Options are sorted by order number; inactive ones are listed on demand.
func dropdownChange(t *testing.T, s dropdown.Store, _ commit.Committer) {
	first := dropdown.Option{Group: "G", Code: "A", English: "a", Turkish: "ağ", Arabic: "أ", OrderNo: 7}
	last := dropdown.Option{Group: "G", Code: "B", English: "b", Turkish: "b", Arabic: "ب", OrderNo: 7}
	var err error
	first.ID, err = s.Add(t.Context(), first)
	storetest.Must(t, err)
	last.ID, err = s.Add(t.Context(), last)
	storetest.Must(t, err)
	listed := func(inactive bool, want ...dropdown.Option) {
		t.Helper()
		got, err := s.List(t.Context(), dropdown.Query{Inactive: inactive})
		storetest.Must(t, err)
		storetest.Same(t, got, append([]dropdown.Option{}, want...))
	}
	listed(false, first, last)
	next := persistencetest.Whole(t, func(o *dropdown.Option) {
		o.ID, o.Group, o.Code, o.OrderNo = first.ID, "G", "A", 8
	})
	storetest.Must(t, s.Change(t.Context(), first.ID, func(o dropdown.Option) (dropdown.Option, error) {
		storetest.Same(t, o, first)
		sent := next
		sent.Group, sent.Code = "H", "C" // both stay
		return sent, nil
	}))
	listed(false, last)
	listed(true, last, next)
	refused := errors.New("no")
	if err := s.Change(t.Context(), last.ID, func(dropdown.Option) (dropdown.Option, error) {
		return next, refused
	}); !errors.Is(err, refused) {
		t.Error(err)
	}
	storetest.Wants(t, s.Change(t.Context(), last.ID+1, func(o dropdown.Option) (dropdown.Option, error) {
		return o, nil
	}), fault.RecordNotFound)
	listed(true, last, next)
}

// No concurrent change is lost.
func dropdownRacingChanges(t *testing.T, s dropdown.Store, _ commit.Committer) {
	id, err := s.Add(t.Context(), dropdown.Option{Group: "G", Code: "A"})
	storetest.Must(t, err)
	const callers = 8
	storetest.Race(t, callers, "", func(int) error {
		return s.Change(t.Context(), id, func(o dropdown.Option) (dropdown.Option, error) {
			o.OrderNo++
			return o, nil
		})
	})
	if all, err := s.List(t.Context(), dropdown.Query{}); err != nil || all[0].OrderNo != callers {
		t.Errorf("%+v, %v", all, err)
	}
}

func dropdownUniqueCode(t *testing.T, s dropdown.Store, _ commit.Committer) {
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
func dropdownSeed(t *testing.T, s dropdown.Store, _ commit.Committer) {
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
