//go:build !race

package budget_test

import "castellan/internal/budget"

var allocations = []string{budget.Allocations}
