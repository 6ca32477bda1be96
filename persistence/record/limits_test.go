package record_test

import (
	"errors"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page reads exactly one record more than its limit, and all of them without a limit.
func TestPartOfPage(t *testing.T) {
	values := func(l label) []any { return []any{l.Name} }
	for limit, want := range map[int]int{0: 0, 1: 2, 2: 3, 100: 101} {
		p := record.PartOf(page.Query[label]{Limit: limit}, values, nil)
		if p.Limit != want || p.After != nil || p.Where != nil {
			t.Errorf("limit %d: %+v, want %d", limit, p, want)
		}
	}
	p := record.PartOf(page.Query[label]{After: &label{Name: "n"}}, values, []record.Filter{record.Is("group", "a")})
	if len(p.After) != 1 || p.After[0] != "n" || len(p.Where) != 1 || p.Limit != 0 {
		t.Errorf("%+v", p)
	}
}

// The query of a backlog reads one row more than its bound, the oldest first.
func TestBacklogReadsOneRowMore(t *testing.T) {
	db := persistencetest.SQLite(t)
	fill(t, db)
	for most, want := range map[int]int{0: 1, 1: 2, 2: 3, 4: 5, 5: 5} {
		got, err := record.ReadBacklog(t.Context(), db, 9, labels.Backlog(t.Context(), db, most, "count"))
		if err != nil || got.Count != want || got.More || got.Oldest.UnixMilli() != 10 {
			t.Errorf("bound %d: %+v, %v, want %d rows from 10 ms", most, got, err, want)
		}
	}
}

// A limit of 1 reads one row.
func TestListOfOne(t *testing.T) {
	db := persistencetest.SQLite(t)
	fill(t, db)
	got, err := labels.List(t.Context(), db, record.Part{Limit: 1})
	if err != nil || len(got) != 1 || got[0].Name != "n4" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A change reports a row that cannot be read, without calling the function. It also reports a save that failed.
func TestFailedChanges(t *testing.T) {
	db := persistencetest.SQLite(t)
	fill(t, db)
	broken, damaged := labels, errors.New("damaged")
	broken.Record = func(labelRow) (label, error) { return label{}, damaged }
	err := broken.Change(t.Context(), db, func(l label) (label, error) {
		t.Errorf("changed %+v", l)
		return l, nil
	}, record.Is("id", 1))
	if !errors.Is(err, damaged) {
		t.Errorf("a row that cannot be read: %v", err)
	}
	renamed := labels
	renamed.Fixed = []string{"created_at"}
	storetest.Wants(t, renamed.Change(t.Context(), db, func(l label) (label, error) {
		l.Name = "n2"
		return l, nil
	}, record.Is("id", 1)), fault.RecordAlreadyExist)
	if l, err := labels.Find(t.Context(), db, record.Is("id", 1)); err != nil || l != (label{1, "n0", "a", 10}) {
		t.Errorf("%+v, %v", l, err)
	}
}
