package record_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// fill creates labels n0 to n4, of the groups a and b in turn.
func fill(t *testing.T, db *persistence.DB) {
	t.Helper()
	createLabels(t, db)
	for i := range 5 {
		_, err := labels.Add(t.Context(), db, label{Name: fmt.Sprint("n", i), Group: string(rune('a' + i%2)),
			Count: int64(10 * (i + 1))})
		storetest.Must(t, err)
	}
}

// A page continues behind a mark in either order. It says whether the list goes on, and counts only on request.
func TestPages(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		fill(t, db)
		values := func(l label) []any { return []any{l.Name, l.ID} }
		ofA := []record.Filter{record.Is("group", "a")}
		for name, c := range map[string]struct {
			q     page.Query[label]
			fs    []record.Filter
			want  string
			more  bool
			total int
		}{
			"all":             {page.Query[label]{}, nil, "n4 n3 n2 n1 n0", false, 0},
			"oldest first":    {page.Query[label]{Oldest: true}, nil, "n0 n1 n2 n3 n4", false, 0},
			"the first":       {page.Query[label]{Limit: 2}, nil, "n4 n3", true, 0},
			"the next":        {page.Query[label]{Limit: 2, After: &label{Name: "n3", ID: 4}}, nil, "n2 n1", true, 0},
			"the last":        {page.Query[label]{Limit: 2, After: &label{Name: "n1", ID: 2}}, nil, "n0", false, 0},
			"exactly all":     {page.Query[label]{Limit: 5}, nil, "n4 n3 n2 n1 n0", false, 0},
			"one less":        {page.Query[label]{Limit: 4}, nil, "n4 n3 n2 n1", true, 0},
			"counted":         {page.Query[label]{Limit: 1, Count: true}, nil, "n4", true, 5},
			"a counted group": {page.Query[label]{Limit: 1, Count: true}, ofA, "n4", true, 3},
			"back from n3": {page.Query[label]{Limit: 1, Oldest: true, After: &label{Name: "n3", ID: 4}}, nil, "n4",
				false, 0},
		} {
			got := storetest.Value(record.ListPage(t.Context(), db, labels, c.q, values, c.fs))(t)
			var names []string
			for _, l := range got.Records {
				names = append(names, l.Name)
			}
			if strings.Join(names, " ") != c.want || got.More != c.more || int(got.Total) != c.total {
				t.Errorf("%s: %v, more %t of %d; want %s, %t of %d", name, names, got.More, got.Total, c.want, c.more, c.total)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := record.ListPage(ctx, db, labels, page.Query[label]{Count: true}, values, nil); err == nil {
			t.Errorf("a page after the caller left: %+v", got)
		}
	})
}

// A backlog counts up to a bound, and names the oldest row of those for which the filters hold.
func TestBacklog(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		fill(t, db)
		for name, c := range map[string]struct {
			most int
			fs   []record.Filter
			want page.Backlog
		}{
			"all":         {9, nil, page.Backlog{Count: 5, Oldest: time.UnixMilli(10)}},
			"exactly all": {5, nil, page.Backlog{Count: 5, Oldest: time.UnixMilli(10)}},
			"more":        {4, nil, page.Backlog{Count: 4, More: true, Oldest: time.UnixMilli(10)}},
			"of a group":  {9, []record.Filter{record.Is("group", "b")}, page.Backlog{Count: 2, Oldest: time.UnixMilli(20)}},
			"none":        {9, []record.Filter{record.Is("group", "c")}, page.Backlog{}},
		} {
			query := labels.Backlog(t.Context(), db, c.most, "count", c.fs...)
			got := storetest.Value(record.ReadBacklog(t.Context(), db, c.most, query))(t)
			if got.Count != c.want.Count || got.More != c.want.More || c.want.Count > 0 && !got.Oldest.Equal(c.want.Oldest) ||
				c.want.Count == 0 && !got.Oldest.IsZero() {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := record.ReadBacklog(ctx, db, 9, labels.Backlog(ctx, db, 9, "count")); err == nil {
			t.Errorf("a backlog after the caller left: %+v", got)
		}
	})
}

// Filters by values that a query does not name hold for every row.
func TestOptionalFilters(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		fill(t, db)
		for want, fs := range map[string][]record.Filter{
			"n4 n3 n2 n1 n0": {record.Sent[string]("group", nil), record.Among[string]("name", nil),
				record.Given("group", "")},
			"n3 n1": {record.Sent("group", new("b"))}, "n2 n0": {record.Among("name", []string{"n0", "n2", "x"})},
			"n1": {record.Where("count > ?", 0).And(record.Is("group", "b")).And(record.Where("count < 30"))},
			"n4": {record.Is("name", "n4").And(record.Given("group", ""))},
		} {
			all := storetest.Value(labels.List(t.Context(), db, record.Part{Where: fs}))(t)
			var names []string
			for _, l := range all {
				names = append(names, l.Name)
			}
			storetest.Equal(t, strings.Join(names, " "), want)
		}
		text, args := record.Is("group", "a").Counted()
		var n int
		storetest.Must(t, db.Conn(t.Context()).NewSelect().Table("label").ColumnExpr(text, args...).Scan(t.Context(), &n))
		storetest.Equal(t, n, 3)
	})
}

// A row that cannot be read is an error of every read.
func TestUnreadableRecords(t *testing.T) {
	db := persistencetest.SQLite(t)
	fill(t, db)
	broken, damaged := labels, errors.New("damaged")
	broken.Record = func(labelRow) (label, error) { return label{}, damaged }
	if got, err := broken.List(t.Context(), db, record.Part{}); !errors.Is(err, damaged) || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := broken.Find(t.Context(), db, record.Is("id", 1)); !errors.Is(err, damaged) || got.ID != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The database sums amounts exactly, also negative and very large ones, and differences of two columns under a
// condition.
func TestSums(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		persistencetest.Exec(t, db, `CREATE TABLE purse (id BIGINT PRIMARY KEY, hi BIGINT NOT NULL, lo BIGINT NOT NULL,
			less_hi BIGINT NOT NULL, less_lo BIGINT NOT NULL)`)
		for i, c := range []struct{ amounts, less, want, difference string }{
			{"1.5 2.5", "0 0", "4", "4"}, {"0.999999999999999999 0.000000000000000001", "1 0", "1", "0"},
			{"-0.5 0.25", "0.5 0.5", "-0.25", "-1.25"}, {"-0.000000000000000001 0", "0 0", "-0.000000000000000001",
				"-0.000000000000000001"},
			{"999999999999999999 -999999999999999998.5", "-1 0", "0.5", "1.5"},
			{"123456789123456789.987654321987654321 0.012345678012345679", "0 0", "123456789123456790", "123456789123456790"},
			{"999999999999999999 1", "1 1", "1000000000000000000", "999999999999999998"},
			{"-999999999999999999 -1.5", "0 0", "-1000000000000000000.5", "-1000000000000000000.5"},
			{"999999999999999999 999999999999999999.5", "-1 0", "1999999999999999998.5", "1999999999999999999.5"},
		} {
			persistencetest.Exec(t, db, "DELETE FROM purse")
			less := strings.Fields(c.less)
			for n, text := range strings.Fields(c.amounts) {
				hi, lo := amount.Must(text).Parts()
				lessHi, lessLo := amount.Must(less[n]).Parts()
				persistencetest.Exec(t, db, "INSERT INTO purse VALUES (?, ?, ?, ?, ?)", n, hi, lo, lessHi, lessLo)
			}
			var sum, difference, one record.SumColumns
			read := func(columns string, into *record.SumColumns) string {
				t.Helper()
				storetest.Must(t, db.Conn(t.Context()).NewSelect().Table("purse").ColumnExpr(columns).Scan(t.Context(), into))
				a := storetest.Value(into.Sum())(t)
				return a.String()
			}
			storetest.Equal(t, read(record.Summed("", "", "", ""), &sum), c.want, i, c.amounts)
			storetest.Equal(t, read(record.Summed("", "", "", "less_"), &difference), c.difference, i, c.amounts, c.less)
			if got, want := read(record.Summed("", "id = 0", "", ""), &one), amount.Must(strings.Fields(c.amounts)[0]); got !=
				want.String() {
				t.Errorf("%d: the first alone is %q, want %s", i, got, want)
			}
		}
	})
	for columns, want := range map[record.SumColumns]string{{HiHigh: 1_000_000_000}: "1000000000000000000",
		{HiHigh: 1_000_000_001}: "1000000001000000000", {HiHigh: -1_000_000_001}: "-1000000001000000000",
		{HiHigh: 1_000_000_000, HiLow: -1}: "999999999999999999",
		{LoHigh: 1_000_000_000}:            "1", {LoHigh: -1, LoLow: 0}: "-0.000000001", {LoLow: -1}: "-0.000000000000000001",
		{HiHigh: 1 << 60}: "1152921504606846976000000000"} {
		storetest.Equal(t, storetest.Value(columns.Sum())(t).String(), want, columns)
	}
}

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

// A change reports a row that cannot be read, without calling the function. It also reports a save that failed.
func TestFailedChanges(t *testing.T) {
	db := persistencetest.SQLite(t)
	fill(t, db)
	broken, damaged := labels, errors.New("damaged")
	broken.Record = func(labelRow) (label, error) { return label{}, damaged }
	storetest.Is(t, broken.Change(t.Context(), db, func(l label) (label, error) {
		t.Errorf("changed %+v", l)
		return l, nil
	}, record.Is("id", 1)), damaged, "a row that cannot be read")
	renamed := labels
	renamed.Fixed = []string{"created_at"}
	storetest.Wants(t, renamed.Change(t.Context(), db, func(l label) (label, error) {
		l.Name = "n2"
		return l, nil
	}, record.Is("id", 1)), fault.RecordAlreadyExist)
	storetest.Equal(t, storetest.Value(labels.Find(t.Context(), db, record.Is("id", 1)))(t), (label{1, "n0", "a", 10}))
}
