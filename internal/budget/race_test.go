//go:build race

package budget_test

// The race detector allocates, too: these counts are not the cost of the service.
var allocations []string
