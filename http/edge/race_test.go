//go:build race

package edge

// instrumented is what the race detector adds to the allocations of a request.
const instrumented = 1
