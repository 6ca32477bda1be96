package budget_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"castellan/domain/kit/storetest"
	"castellan/internal/budget"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	detail = flag.Bool("detail", false, "list the statements, rows and index entries of every flow")
)

const golden = "testdata/budgets.tsv"

// TestGoldenBudgets compares each flow with its budget on both databases.
func TestGoldenBudgets(t *testing.T) {
	table := storetest.Value(budget.Read(golden))(t)
	var mu sync.Mutex
	measured, examples := budget.Table{}, map[budget.Key]counts{}
	t.Run("measure", func(t *testing.T) {
		for _, kind := range kinds {
			t.Run(kind.name, func(t *testing.T) {
				t.Parallel()
				if len(kind.measures) == 0 {
					return
				}
				s := kind.make(t)
				s.database, s.measures = kind.database, kind.measures
				costs, counted := s.measure(table)
				mu.Lock()
				defer mu.Unlock()
				for k := range costs {
					measured[k] = budget.Least(measured[k], costs[k])
					if counted[k].Statements != nil {
						examples[k] = counted[k]
					}
				}
			})
		}
	})
	t.Logf("measured:\n%s", aligned(measured.Text(names())))
	switch {
	case t.Failed():
	case *update:
		storetest.Must(t, os.WriteFile(golden, []byte(table.Updated(measured).Text(names())), 0o644))
	default:
		compare(t, table, measured, examples)
	}
}

// compare fails the test for each cost that differs from its budget, and lists the operations of the flow.
func compare(t *testing.T, table, measured budget.Table, examples map[budget.Key]counts) {
	t.Helper()
	for k := range table {
		if _, is := measured[k]; !is {
			t.Errorf("%s has a budget for %s on %s, which is no flow", golden, k.Flow, k.Database)
		}
	}
	for _, database := range budget.Databases {
		for _, flow := range names() {
			k := budget.Key{Database: database, Flow: flow}
			breaches := table.Breaches(k, measured[k])
			for _, b := range breaches {
				t.Errorf("%s\n\tto change a budget on purpose: internal/budget/%s (CONTRIBUTING.md)", b, golden)
			}
			counted := func(b budget.Breach) bool { return b.Measure != budget.WALBytes && b.Measure != budget.Allocations }
			if *detail || slices.ContainsFunc(breaches, counted) {
				t.Logf("what %s on %s did:\n%s", flow, database, examples[k].breakdown())
			}
		}
	}
}

// measure measures all flows. The smallest of all samples of a flow counts: background work, the split of a page and
// the first preparation of a statement only add to one. Rounds are repeated while a cost differs from its budget, for a
// machine that disturbs every sample.
func (s *site) measure(table budget.Table) (budget.Table, map[budget.Key]counts) {
	s.t.Helper()
	d := newDriver(s)
	least, examples := budget.Table{}, map[budget.Key]counts{}
	for round, again := 0, true; again && round < rounds; round++ {
		d.round(round, least, examples)
		again = false
		for k, costs := range least {
			again = again || len(table.Breaches(k, costs)) > 0
		}
	}
	return least, examples
}

// round measures all flows with separate people.
func (d *driver) round(round int, least budget.Table, examples map[budget.Key]counts) {
	d.t.Helper()
	people := map[string][]*person{}
	for i, m := range methods {
		at := 1 + (round*len(methods)+i)*(perFlow+warmUps)
		for j := range perFlow + warmUps {
			people[m] = append(people[m], &d.people[at+j])
		}
	}
	for _, f := range flows { // statements are prepared, connections opened
		if f.name == coldFlow {
			continue
		}
		for _, p := range people[f.method][:warmUps] {
			if f.before != nil {
				f.before(d, p)
			}
			f.do(d, p)
		}
	}
	for _, f := range flows {
		for _, p := range people[f.method][warmUps:] {
			if f.before != nil {
				f.before(d, p)
			}
		}
		k := budget.Key{Database: d.database, Flow: f.name}
		for _, p := range people[f.method][warmUps:] {
			c := d.sample(func() { f.do(d, p) })
			least[k] = budget.Least(least[k], d.costs(c, f.n))
			if known, is := examples[k]; !is || c.size() < known.size() {
				examples[k] = c
			}
		}
	}
}

// aligned formats a table for display.
func aligned(text string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			fmt.Fprintln(w, strings.TrimSuffix(line, "\n")+"\t")
		}
	}
	w.Flush()
	return b.String()
}
