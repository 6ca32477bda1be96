//go:build race

package budget_test

// The race detector allocates, too, so the counts would not be the service's costs.
var allocations []string
