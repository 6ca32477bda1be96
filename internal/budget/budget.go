// Package budget limits the cost of the common flows of the service: a login, its second factor, a request with a
// token, a decision of the firewall, a posted transfer. Costs are counted, not timed, so they are the same on any
// machine and a test can enforce them.
//
// The one idea: the budgets are a table, testdata/budgets.tsv. The test measures every flow on both databases and
// compares. A cost that rises fails the test until the table is changed on purpose. A count that falls fails it too, so
// that the gain is kept.
//
// Start reading at Measures. The test is in golden_test.go: flows_test.go defines the flows, and the other files count
// their costs.
package budget

import (
	"fmt"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"
)

// Measure is one kind of cost.
type Measure struct {
	Name string
	// Tolerance is the part of a budget by which a cost may exceed it, and Slack the smallest such difference. Counts
	// are exact; sizes and allocations vary a little.
	Tolerance float64
	Slack     int
}

// The measures.
const (
	Statements   = "statements"    // of SQL; SQLite: one for each row
	RoundTrips   = "round-trips"   // to the server; SQLite has none
	Transactions = "transactions"  // that wrote rows
	Rows         = "rows"          // inserted, updated or deleted
	IndexEntries = "index-entries" // added to an index
	WALBytes     = "wal-bytes"     // of the write-ahead log, without images of whole pages
	Allocations  = "allocations"   // of memory, by the service
)

// Measures are all measures, in the order of the columns of the table.
var Measures = []Measure{
	{Name: Statements}, {Name: RoundTrips}, {Name: Transactions}, {Name: Rows}, {Name: IndexEntries},
	{WALBytes, 0.02, 50}, {Allocations, 0.05, 3},
}

// allows returns whether a cost is the budget or within its tolerance, above or below.
func (m Measure) allows(budget, cost int) bool {
	return math.Abs(float64(cost-budget)) <= math.Max(m.Tolerance*float64(budget), float64(m.Slack))
}

// Costs are the costs of a flow, by the name of the measure. A database may lack a measure.
type Costs map[string]int

// Databases are the databases, in the order of the table.
var Databases = []string{"sqlite", "postgres"}

// Key names a row of the table.
type Key struct{ Database, Flow string }

// Table holds the budget of each flow on each database.
type Table map[Key]Costs

// head explains the table to its readers.
const head = `# The budgets of the flows, counted by go test ./internal/budget. To change a budget on purpose:
#   go test -count=1 -run Golden ./internal/budget -update
# and say in the commit what the flow gains by it. CONTRIBUTING.md has the rules.
`

// Read reads a table from its file. A file that does not exist is an empty table.
func Read(file string) (Table, error) {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return Table{}, nil
	}
	if err != nil {
		return nil, err
	}
	t := Table{}
	var columns []string
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "\t")
		if columns == nil {
			columns = cells
			continue
		}
		if len(cells) != len(columns) || len(cells) < 2 {
			return nil, fmt.Errorf("%s:%d: %d cells, want %d", file, n+1, len(cells), len(columns))
		}
		costs := Costs{}
		for i, cell := range cells[2:] {
			if cell == "-" {
				continue
			}
			if costs[columns[i+2]], err = strconv.Atoi(cell); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
			}
		}
		t[Key{cells[0], cells[1]}] = costs
	}
	return t, nil
}

// Text returns the table in the format of its file, in the order of the flows.
func (t Table) Text(flows []string) string {
	var b strings.Builder
	b.WriteString(head + "database\tflow")
	for _, m := range Measures {
		b.WriteString("\t" + m.Name)
	}
	b.WriteString("\n")
	for _, database := range Databases {
		for _, flow := range flows {
			costs, known := t[Key{database, flow}]
			if !known {
				continue
			}
			b.WriteString(database + "\t" + flow)
			for _, m := range Measures {
				if cost, has := costs[m.Name]; has {
					fmt.Fprintf(&b, "\t%d", cost)
				} else {
					b.WriteString("\t-")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Breach is a cost that differs from the table.
type Breach struct {
	Key
	Measure string
	Budget  int // -1: the table has none
	Cost    int
}

func (b Breach) String() string {
	what := fmt.Sprintf("%s on %s: %s", b.Flow, b.Database, b.Measure)
	switch {
	case b.Budget < 0:
		return fmt.Sprintf("%s: no budget, measured %d", what, b.Cost)
	case b.Cost > b.Budget:
		return fmt.Sprintf("%s rose from %d to %d", what, b.Budget, b.Cost)
	default:
		return fmt.Sprintf("%s fell from %d to %d: lower the budget, so that the gain is kept", what, b.Budget, b.Cost)
	}
}

// Breaches compares measured costs of a row with its budget. A cost with a tolerance may
// fall; a count may not.
func (t Table) Breaches(k Key, measured Costs) (found []Breach) {
	for _, m := range Measures {
		cost, has := measured[m.Name]
		if !has {
			continue
		}
		budget, known := t[k][m.Name]
		switch {
		case !known:
			found = append(found, Breach{k, m.Name, -1, cost})
		case cost > budget && !m.allows(budget, cost), cost < budget && m.Tolerance == 0:
			found = append(found, Breach{k, m.Name, budget, cost})
		}
	}
	return found
}

// Updated returns the table with measured costs as the budgets. A budget that allows its
// cost stays, so that measuring again changes nothing; so does one that was not measured.
func (t Table) Updated(measured Table) Table {
	out := Table{}
	for k, costs := range measured {
		out[k] = Costs{}
		maps.Copy(out[k], t[k])
		for _, m := range Measures {
			cost, has := costs[m.Name]
			if budget, known := t[k][m.Name]; has && !(known && m.allows(budget, cost)) {
				out[k][m.Name] = cost
			}
		}
	}
	return out
}

// Least returns the lesser of each cost: a disturbance of a measurement only adds to it.
func Least(a, b Costs) Costs {
	least := maps.Clone(a)
	if least == nil {
		least = Costs{}
	}
	for m, cost := range b {
		if other, both := least[m]; !both || cost < other {
			least[m] = cost
		}
	}
	return least
}
