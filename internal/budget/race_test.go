//go:build race

package budget_test

// The race detector allocates, too: what is counted here is not what the service costs.
var allocations []string
