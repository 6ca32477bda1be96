//go:build !race

package edge

const instrumented = 0
