package budget_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"castellan/internal/budget"
)

var login = budget.Key{Database: "sqlite", Flow: "login"}

// A count must be its budget; a size and allocations may vary within their tolerance, and may fall.
func TestBreaches(t *testing.T) {
	for _, c := range []struct {
		measure      string
		budget, cost int
		want         string // "": no breach
	}{
		{budget.Rows, 6, 6, ""},
		{budget.Rows, 6, 7, "login on sqlite: rows rose from 6 to 7"},
		{budget.Rows, 6, 5, "login on sqlite: rows fell from 6 to 5: lower the budget, so that the gain is kept"},
		{budget.Statements, 0, 1, "login on sqlite: statements rose from 0 to 1"},
		{budget.WALBytes, 10000, 10200, ""},
		{budget.WALBytes, 10000, 10201, "login on sqlite: wal-bytes rose from 10000 to 10201"},
		{budget.Allocations, 200, 210, ""},
		{budget.Allocations, 200, 211, "login on sqlite: allocations rose from 200 to 211"},
		{budget.Allocations, 20, 23, ""},
		{budget.Allocations, 20, 24, "login on sqlite: allocations rose from 20 to 24"},
		{budget.Allocations, 200, 20, ""},
	} {
		table := budget.Table{login: {c.measure: c.budget}}
		got := ""
		for _, b := range table.Breaches(login, budget.Costs{c.measure: c.cost}) {
			got += b.String()
		}
		if got != c.want {
			t.Errorf("%s of %d, budget %d: %q, want %q", c.measure, c.cost, c.budget, got, c.want)
		}
	}
	none := budget.Table{}.Breaches(login, budget.Costs{budget.Rows: 6})
	if len(none) != 1 || none[0].String() != "login on sqlite: rows: no budget, measured 6" {
		t.Errorf("without a budget: %v", none)
	}
}

// The updated table keeps a budget that covers the measured value, and one without a measurement.
func TestUpdated(t *testing.T) {
	table := budget.Table{login: {budget.Rows: 6, budget.WALBytes: 10000, budget.Allocations: 200},
		{Database: "sqlite", Flow: "gone"}: {budget.Rows: 1}}
	got := table.Updated(budget.Table{login: {budget.Rows: 5, budget.WALBytes: 9801}})
	want := budget.Table{login: {budget.Rows: 5, budget.WALBytes: 10000, budget.Allocations: 200}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTableIsReadAsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "budgets.tsv")
	if empty, err := budget.Read(file); err != nil || len(empty) != 0 {
		t.Errorf("without a file: %v, %v", empty, err)
	}
	table := budget.Table{login: {budget.Rows: 6, budget.Allocations: 0},
		{Database: "postgres", Flow: "login"}: {budget.RoundTrips: 2}}
	text := table.Text([]string{"login"})
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := budget.Read(file); err != nil || !reflect.DeepEqual(got, table) {
		t.Errorf("got %v, %v, want %v", got, err, table)
	}
	for _, broken := range []string{strings.Replace(text, "\t6", "\tsix", 1), text + "sqlite\tlogin\t1\n"} {
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := budget.Read(file); err == nil {
			t.Errorf("read %v from %q", got, broken)
		}
	}
}

func TestLeast(t *testing.T) {
	got := budget.Least(budget.Costs{budget.Rows: 6, budget.Statements: 2},
		budget.Costs{budget.Rows: 5, budget.WALBytes: 9})
	want := budget.Costs{budget.Rows: 5, budget.Statements: 2, budget.WALBytes: 9}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := budget.Least(nil, want); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("of none and %v: %v", want, got)
	}
}
